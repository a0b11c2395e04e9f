"""Hypothesis without a deadline: how long an example takes depends on the machine's other work."""

from hypothesis import settings

settings.register_profile("tenure", deadline=None)
settings.load_profile("tenure")
