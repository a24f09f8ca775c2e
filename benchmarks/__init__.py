"""Speed beside the rivals: ``make bench``."""
