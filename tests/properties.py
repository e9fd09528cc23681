"""How many examples a property runs."""

from hypothesis import settings


def fewer(examples):
    """Settings of a property whose examples are slow: so many of 100, in the suite and when validating."""
    return settings(max_examples=max(1, examples * settings.default.max_examples // 100))
