"""Where ``sketchbandit.client`` is now: ``sketchbandit_service.client``."""

raise ImportError(
    "sketchbandit.client is now sketchbandit_service.client: import it from there", name=__name__
)
