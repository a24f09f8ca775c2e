"""What the loops and their counterparts in numpy must agree on."""

CANCELLED = 1e-6
"""|x|² - |u|² below this part of |x|² has lost more than six digits."""
