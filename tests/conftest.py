"""Profiles of the property tests: repeatable by default, many random examples for a soak."""

import os

from hypothesis import settings

settings.register_profile("default", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
