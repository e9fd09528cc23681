"""Arguments that must be numbers in a range, or one of a few names: one check each, one wording.

`check_memory` refuses work that would not fit into memory, before it is done; `escaped` makes text safe to print.
"""

from __future__ import annotations

import difflib
import itertools
import math
import operator
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

from causal_shaping.errors import ArgumentError, DataError

LARGEST = 2**63 - 1
"""The largest whole number that compiled code and files can hold."""

LARGEST_REWARD = 1e140
"""The largest reward, of either sign: squares of its sums over the longest horizon are finite numbers, too."""

MOST_STEPS_AN_EPISODE = 1_000_000
"""The longest horizon: a bound, or a learner's table, has an entry for each of its steps."""

MOST_SEEDS = 100_000
"""The most seeds that one call runs: each is kept in a file of its own, or in memory."""

MOST_BINS = 500
"""The most bins of a column: each is a term in what the engine computes for every row."""

CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much memory a container may use."""

REMOVED_ARGUMENTS = {
    "reveal_noise": "Agents never see the noise; env.unwrapped.see(demonstrator) lets a demonstrator act on it."
}
"""A keyword argument of version 0.2 that is gone to one sentence: what takes its place."""


def check_integer(name: str, value: Any, least: int = 0, most: int = LARGEST) -> int:
    """Return an argument that must be a whole number as an int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {value!r}; it must be a whole number.") from None
    shown = number if abs(number) <= LARGEST else f"a number of {number.bit_length()} bits"
    if number < least:
        raise ArgumentError(f"{name} is {shown}; it must be at least {least}.")
    if number > most:
        raise ArgumentError(f"{name} is {shown}; it must be at most {most:,}.")
    return number


def check_horizon(horizon: Any) -> int:
    """Return the number of steps of an episode as an int."""
    return check_integer("horizon", horizon, least=1, most=MOST_STEPS_AN_EPISODE)


def check_seeds(seeds: Iterable[Any]) -> list[int]:
    """Return the numbers of seeds in their order, each once."""
    given = list(itertools.islice(seeds, MOST_SEEDS + 1))
    if not given:
        raise ArgumentError("There are no seeds to run: seeds must be at least 1.")
    if len(given) > MOST_SEEDS:
        raise ArgumentError(f"There are too many seeds: run at most {MOST_SEEDS:,} at a time.")
    return sorted({check_integer("a seed", seed) for seed in given})


def check_memory(what: str, size: float) -> None:
    """Refuse work that needs more bytes than this machine has; `what` names the arguments to lower."""
    memory = machine_memory()
    if size > memory:
        raise ArgumentError(
            f"{what} needs about {_gigabytes(size)} of memory; this machine has {_gigabytes(memory)}. Pass less."
        )


def machine_memory() -> float:
    """Return how many bytes this process could have: of the machine, its container, and its own limit."""
    found = [math.inf]
    if sys.platform != "win32":
        import resource

        found.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        found.append(math.inf if limit == resource.RLIM_INFINITY else float(limit))
    with suppress(OSError, ValueError):
        found.append(float(CGROUP_LIMIT.read_text().replace("max", "inf")))
    return min(found)


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e12 else f"{size / 1e9:,.0f} GB" if size < 1e18 else "over 1e9 GB"


def check_finite(name: str, value: float) -> None:
    """Refuse a number that is not finite, or so large that its square, summed over steps, would not be."""
    if not math.isfinite(value):
        raise ArgumentError(f"{name} is {value}; it must be a finite number.")
    if abs(value) > LARGEST_REWARD:
        raise ArgumentError(
            f"{name} is {value}; it must lie between -{LARGEST_REWARD:g} and {LARGEST_REWARD:g}. Give rewards in a "
            "larger unit."
        )


def check_probability(name: str, value: float, example: str = "0.95") -> None:
    """Refuse a number that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ArgumentError(f"{name} is {value}; it must be between 0 and 1, such as {example}.")


def check_discount(discount: float) -> None:
    """Refuse a factor on future reward that is not above 0 and at most 1."""
    if not 0 < discount <= 1:
        raise ArgumentError(f"discount is {discount}; it must be above 0 and at most 1.")


def check_line(what: str, name: str) -> str:
    """Return a name that is one line of text: in a summary, what follows a line break could pass for our words."""
    if "\n" in name:
        raise DataError(f"{what} {name!r} holds a line break. Names and labels are one line of text: replace it.")
    if any("\ud800" <= sign <= "\udfff" for sign in name):  # how Python reads a byte of a file name that is no text
        raise DataError(f"{what} {name!r} holds bytes that are no text, which no file could keep: replace them.")
    return name


def escaped(text: str, keep: str = "") -> str:
    """Return text whose control characters, but for those to keep, are written as escapes."""
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode() for sign in text
    )


def check_choice(name: str, value: Any, choices: Sequence[str], more: str = "") -> None:
    """Refuse a name that is not one of a few."""
    if value not in choices:
        raise ArgumentError(f"{name} is {value!r}; use {' or '.join(map(repr, choices))}{more}.")


def check_names(given: Iterable[str], what: str, *functions: Callable[..., Any]) -> None:
    """Refuse a keyword argument that none of some functions has, and name the nearest one of theirs."""
    parameters = [item for one in functions for item in signature(one).parameters.values()]
    known = [item.name for item in parameters if item.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}=?" if near else f"It takes {', '.join(dict.fromkeys(known))}."
            raise ArgumentError(f"{what} takes no {name}=. {REMOVED_ARGUMENTS.get(name, hint)}")
