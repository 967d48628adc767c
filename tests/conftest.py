"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A machine that others use too takes any time for an example: no time is a failure.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")
