"""Where ``sketchbandit.experiments`` is now: ``sketchbandit_paper``."""

raise ImportError("sketchbandit.experiments is now sketchbandit_paper: import it from there", name=__name__)
