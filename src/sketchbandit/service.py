"""Where ``sketchbandit.service`` is now: ``sketchbandit_service``."""

raise ImportError("sketchbandit.service is now sketchbandit_service: import it from there", name=__name__)
