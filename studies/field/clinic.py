"""A clinic with a hidden cause that lasts: which of two drugs is right is drawn once for a stay, or afresh each day.

The right drug helps in 9 of 10 cases, the wrong one in 1 of 10. Doctors prefer a drug each, and may have a hint of the
right one, which the log does not hold. The state is the same each day. The truth is the most that a policy can earn in
a stay, one that remembers what helped.

- `claims`: what each tool claims about that, whether it holds, and whether a test flags the logs.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from causal_shaping.bounds import value_ceilings
from causal_shaping.data.counts import Counts
from causal_shaping.data.logs import Logs
from causal_shaping.data.space import Space
from causal_shaping.diagnose import persistence_test
from causal_shaping.logs import count
from studies.calibration.episodes import bound_episodes
from studies.field.demonstrators import odds_ratio
from studies.field.plan import CONFIDENCE, LOG_SEED

DAYS, HELPS, PREFERS = 3, (0.1, 0.9), 0.8
HINTS, STAYS = (0.0, 0.4), (300, 4_000)
"""How much a hint moves a doctor, and how many stays each doctor has."""

LEVEL = 0.05
"""A test flags the logs at this level."""


def claims() -> list[dict[str, Any]]:
    """Return a row per tool and clinic."""
    rows = []
    for lasts, hint, stays in itertools.product((False, True), HINTS, STAYS):
        logs = [_stays(doctor, lasts, hint, stays) for doctor in (0, 1)]
        truth, counts = optimum(lasts), count(logs, complete=True)
        p_value = persistence_test(logs).p_value
        flagged = p_value is not None and bool(p_value < LEVEL)
        where = f"the cause {'lasts' if lasts else 'is fresh'}, hint {hint:g}, {stays:,} stays"
        episode_ceilings, _ = bound_episodes(logs, DAYS, 1.0, reward_min=0.0, confidence=CONFIDENCE)
        for name, high in (
            ("ceiling at the true Gamma", _ceiling(counts, _gamma(hint))),
            ("ceiling, any confounding", _ceiling(counts, math.inf)),
            ("episode ceiling", float(episode_ceilings[0])),
            ("logs believed (a guess)", _believed(counts)),
        ):
            rows.append({"claim": f"{name}: {where}", "high": high, "truth": truth, "flagged": flagged})
    return rows


def _ceiling(counts: Counts, gamma: float) -> float:
    """Return the ceiling of the first day."""
    found = value_ceilings(counts, DAYS, 1.0, confounding=gamma, confidence=CONFIDENCE, support="any")
    return float(found.values[0, 0])


def _chance(doctor: int, right: Any, hint: float) -> Any:
    """Return how often a doctor takes the second drug, given which one is right."""
    habit = PREFERS if doctor else 1 - PREFERS
    return (1 - hint) * habit + hint * right


def _gamma(hint: float) -> float:
    """Return how far knowing the right drug changes the odds of an action, at most."""
    second = np.array([[_chance(doctor, right, hint) for right in (0, 1)] for doctor in (0, 1)])
    beta = np.stack([1 - second, second], axis=-1)  # [doctor, right, drug]
    return float(odds_ratio(beta, np.full((2, 2), 0.5)).max())


def _stays(doctor: int, lasts: bool, hint: float, stays: int) -> Logs:
    """Return the logs of a doctor."""
    rng = np.random.default_rng([LOG_SEED, doctor, int(lasts), round(10 * hint), stays])
    right = np.repeat(rng.integers(0, 2, (stays, 1)), DAYS, axis=1) if lasts else rng.integers(0, 2, (stays, DAYS))
    drug = (rng.random((stays, DAYS)) < _chance(doctor, right, hint)).astype(np.int32)
    paid = (rng.random((stays, DAYS)) < np.where(drug == right, HELPS[1], HELPS[0])).astype(float)
    rows, day = stays * DAYS, np.tile(np.arange(DAYS, dtype=np.int32), stays)
    return Logs(
        Space(["ill"], ["red", "blue"]),
        ("Dr. Red", "Dr. Blue")[doctor],
        episode=np.repeat(np.arange(stays), DAYS),
        step=day,
        state=np.zeros(rows, dtype=np.int32),
        action=drug.ravel(),
        reward=paid.ravel(),
        next_state=np.zeros(rows, dtype=np.int32),
        terminated=np.zeros(rows, dtype=bool),
        truncated=day == DAYS - 1,
    )


def _believed(counts: Counts) -> float:
    """Return the best value of a day after another in what both doctors' logs show, as if they were a trial."""
    paid = np.bincount(counts.action, counts.reward_sum, 2) / np.bincount(counts.action, counts.n, 2)
    return DAYS * float(paid.max())


def optimum(lasts: bool, day: int = 0, belief: float = 0.5) -> float:
    """Return the most that a policy can earn from a day on; `belief` is the chance of one drug to be right."""
    if day == DAYS:
        return 0.0
    values = []
    for right in (belief, 1 - belief):  # of the drug that is taken: this one, the other
        heals = right * HELPS[1] + (1 - right) * HELPS[0]
        helped, failed = right * HELPS[1] / heals, right * (1 - HELPS[1]) / (1 - heals)
        after = (helped, failed) if lasts else (0.5, 0.5)
        good, bad = (optimum(lasts, day + 1, one) for one in after)
        values.append(heals * (1 + good) + (1 - heals) * bad)
    return max(values)
