"""Which rows a member of a fit sees, which are held out, and at which observations values are kept."""

from __future__ import annotations

import math
from hashlib import blake2b

import numpy as np

from causal_shaping.bounds.settings import refuse_reward
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.space import UNKNOWN
from causal_shaping.data.transitions import Transitions
from causal_shaping.fitted.settings import Settings

HELD_OUT_ROWS = 20_000
"""About so many held-out rows are looked at."""

REPEATED = 0.5
"""Observations repeat, as those of a table do, if fewer than this share of them are distinct."""


def check_rewards(rows: Transitions, settings: Settings) -> None:
    """Refuse a bound of the reward that a logged reward breaks, and rewards that are too large."""
    name = "reward_max" if settings.side > 0 else "reward_min"
    for source in rows.sources:
        own = rows.reward[rows.rows_of(source)]
        if len(own):
            low, high = float(own.min()), float(own.max())
            refuse_reward(name, settings.reward_bound, source, high if settings.side > 0 else low)
            settings.check_size(f"A reward of {source!r}", max(low, high, key=abs))


def held_out(rows: Transitions, settings: Settings) -> BoolArray:
    """Return which rows belong to held-out episodes: the same share of each source's."""
    rng = np.random.default_rng([settings.seed, 1])
    chosen = np.zeros(rows.episodes, dtype=bool)
    for source in rows.sources:
        own = np.unique(rows.episode[rows.rows_of(source)])
        chosen[rng.choice(own, int(settings.held_out * len(own)), replace=False)] = True
    return np.asarray(chosen[rows.episode])


def seen_by(
    rows: Transitions, held: BoolArray, settings: Settings, member: int, some: LongArray
) -> tuple[Transitions, FloatArray, LongArray]:
    """Return the rows that a member sees, their weight, and where the kept observations stand among theirs.

    Some of the held-out episodes come along without weight, for `diagnostics`.
    """
    rng = np.random.default_rng([settings.seed, 2, member])
    out = np.zeros(rows.episodes, dtype=bool)
    out[rows.episode[held]] = True
    share = min(1.0 if settings.members == 1 else 0.5, settings.most_rows / len(rows))
    tested = min(1.0, HELD_OUT_ROWS / max(int(np.count_nonzero(held)), 1))
    chosen = np.zeros(rows.episodes, dtype=bool)
    for source in rows.sources:
        own = np.unique(rows.episode[rows.rows_of(source)])
        for group, part in ((own[~out[own]], share), (own[out[own]], tested)):
            chosen[rng.choice(group, math.ceil(part * len(group)), replace=False)] = True
    taken = np.asarray(chosen[rows.episode])
    seen, places = rows.take(taken, some)
    return seen, np.where(held[taken], 0.0, 1.0), places


def kept_at(rows: Transitions, held: BoolArray, settings: Settings) -> tuple[LongArray, bool]:
    """Return the observations at which values are kept, each distinct one once, and whether observations repeat."""
    rng = np.random.default_rng([settings.seed, 3])
    own = some_of(np.flatnonzero(~held), 2 * settings.kept, rng)
    lasting = rows.next_state[own][~rows.terminated[own]]
    numbers = some_of(np.union1d(rows.state[own], lasting[lasting != UNKNOWN]), 2 * settings.kept, rng)
    digests = b"".join(blake2b(rows.observations[k].tobytes(), digest_size=16).digest() for k in numbers)
    _, first = np.unique(np.frombuffer(digests, dtype=np.dtype((np.void, 16))), return_index=True)
    repeated = len(first) < REPEATED * len(numbers)
    return numbers[some_of(np.sort(first), settings.kept, rng)], repeated


def some_of(numbers: LongArray, most: int, rng: np.random.Generator) -> LongArray:
    """Return so many of the numbers at most, drawn at random, in their order."""
    return numbers if len(numbers) <= most else np.sort(rng.choice(numbers, most, replace=False))
