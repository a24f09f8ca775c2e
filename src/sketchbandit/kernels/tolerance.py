"""A constant that the loops and their numpy counterparts share."""

CANCELLED = 1e-6
"""|x|² - |u|² below this part of |x|² has lost more than six digits."""
