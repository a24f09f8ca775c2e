"""Constants that the loops and their numpy counterparts share."""

CANCELLED = 1e-6
"""|x|² - |u|² below this part of |x|² has lost more than six digits."""

CLOSE = 1e-9
"""Scores that differ by less, relative to the largest, may be those of copies; others hardly ever do."""
