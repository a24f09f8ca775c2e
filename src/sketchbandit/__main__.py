"""``python -m sketchbandit`` is the command ``sketchbandit``."""

from sketchbandit.cli import main

main()
