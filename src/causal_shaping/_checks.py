"""Arguments that must be numbers in a range, or one of a few names: one check each, one wording."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from causal_shaping.errors import ArgumentError


def check_integer(name: str, value: Any, least: int = 0) -> int:
    """Return an argument that must be a whole number as an int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {value!r}; it must be a whole number.") from None
    if number < least:
        raise ArgumentError(f"{name} is {number}; it must be at least {least}.")
    return number


def check_finite(name: str, value: float) -> None:
    """Refuse a number that is not finite."""
    if not math.isfinite(value):
        raise ArgumentError(f"{name} is {value}; it must be a finite number.")


def check_probability(name: str, value: float, example: str = "0.95") -> None:
    """Refuse a number that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ArgumentError(f"{name} is {value}; it must be between 0 and 1, such as {example}.")


def check_discount(discount: float) -> None:
    """Refuse a factor on future reward that is not above 0 and at most 1."""
    if not 0 < discount <= 1:
        raise ArgumentError(f"discount is {discount}; it must be above 0 and at most 1.")


def check_choice(name: str, value: Any, choices: Sequence[str], more: str = "") -> None:
    """Refuse a name that is not one of a few."""
    if value not in choices:
        raise ArgumentError(f"{name} is {value!r}; use {' or '.join(map(repr, choices))}{more}.")
