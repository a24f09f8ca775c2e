"""The paper's experiments. Needs the extra ``sketchbandit[experiments]``."""
