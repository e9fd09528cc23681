"""What counts are worth, before anything is bounded.

- `coverage`: which states and actions each source shows, and how much mass it can prove.
- `unseen_mass`: how believable it is that every possible outcome was seen.
- `contradictions`: where two sources cannot both be unconfounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from causal_shaping.bounds._limits import lower_limit, upper_limit
from causal_shaping.data.arrays import FloatArray, groups
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.errors import ArgumentError

LEVEL = 0.05
"""The chance that `contradictions` names anything at all where all sources are unconfounded."""

FEW_VISITS = 10
"""Fewer visits to a state than this are called few."""

CANDIDATE = 0.05
"""Approximate p-values above this are kept; below, they are replaced by those of a permutation test."""

CERTAIN = 1e-12
EXPECTED = 10
"""Approximate p-values below `CERTAIN`, with no expected count below `EXPECTED`, need no permutation test."""

MOST_DEALT = 1e9
"""Outcomes beyond which a permutation test is out of reach, and the approximation as good."""

EXCEEDANCES = 20
"""A permutation test stops when this many permutations were at least as extreme (Besag and Clifford 1991)."""

MOST_CONFOUNDING = 1e6
"""Confounding beyond this is called infinite."""


@dataclass(frozen=True)
class Coverage:
    """What one source shows of the space.

    Attributes:
        source: its name.
        steps: how many actions it took.
        states: how many states it left at least once.
        few: labels of states that it left fewer times than the limit.
        never: labels of states that no row of it leaves or enters.
        untried: (state, action) of the states that it left, never tried.
        action_share: how often it takes its most frequent action, mean over its steps: the mass that a confounded
            source proves at best.
    """

    source: str
    steps: int
    states: int
    few: tuple[Label, ...]
    never: tuple[Label, ...]
    untried: tuple[tuple[Label, Label], ...]
    action_share: float


@dataclass(frozen=True)
class Contradiction:
    """A (state, action) after which two sources show outcomes that differ by more than chance.

    At least one of the two is confounded there, or they did not watch the same world.

    Attributes:
        first: a source.
        second: the other.
        state: label of the state.
        action: label of the action.
        p_value: of the homogeneity test, corrected for all tests that were made (Holm).
        outcome: the outcome that differs most, in words.
        first_share: how often it follows in the first source.
        second_share: how often it follows in the second.
        confounding: the smallest Gamma at which both sources are possible, sampling error allowed for at 95%; inf if
            only unlimited confounding reconciles them, None if nothing does.
        step: at which step, counted from 0, if the counts keep steps apart; None if they are pooled.
    """

    first: str
    second: str
    state: Label
    action: Label
    p_value: float
    outcome: str
    first_share: float
    second_share: float
    confounding: float | None
    step: int | None = None

    def __str__(self) -> str:
        if self.confounding is None:
            reconciled = "No confounding reconciles them (at 95% confidence): they did not watch the same world."
        elif math.isinf(self.confounding):
            reconciled = "At least one of them is confounded there, without limit."
        elif self.confounding == 1:
            reconciled = "At least one of them is confounded there; a little reconciles them."
        else:
            reconciled = (
                f"At least one of them is confounded there; a confounding of {self.confounding:.3g} reconciles them."
            )
        when = "" if self.step is None else f" at step {self.step}"
        return (
            f"{self.first} and {self.second} disagree on what {self.action} does in {self.state}{when}: it "
            f"{self.outcome} in {self.first_share:.0%} against {self.second_share:.0%}. {reconciled}"
        )


def coverage(counts: Counts, few: int = FEW_VISITS) -> list[Coverage]:
    """Return what each source shows of the space."""
    states = len(counts.space.states)
    result = []
    for i, source in enumerate(counts.sources):
        here = counts.source == i
        taken = actions_taken(counts, i)
        visits = taken.sum(axis=1)
        entered = np.zeros(states, dtype=bool)
        entered[counts.next_state[here & (counts.next_state != UNKNOWN)]] = True
        left = visits > 0
        result.append(
            Coverage(
                source=source,
                steps=int(visits.sum()),
                states=int(left.sum()),
                few=_labels(counts, left & (visits < few)),
                never=_labels(counts, ~left & ~entered),
                untried=tuple(
                    (counts.space.states[s], counts.space.actions[x])
                    for s, x in np.argwhere(left[:, None] & (taken == 0)).tolist()
                ),
                action_share=float(taken.max(axis=1).sum() / visits.sum()),
            )
        )
    return result


def actions_taken(counts: Counts, source: int) -> FloatArray:
    """Return how often a source took each action in each state: float64 [states, actions]."""
    here = counts.source == source
    taken = np.zeros((len(counts.space.states), len(counts.space.actions)))
    np.add.at(taken, (counts.state[here], counts.action[here]), counts.n[here])
    return taken


def _labels(counts: Counts, which: npt.NDArray[np.bool_]) -> tuple[Label, ...]:
    return tuple(counts.space.states[s] for s in np.flatnonzero(which))


def unseen_mass(counts: Counts) -> FloatArray:
    """Return, per state, how much of what follows it was probably never seen: float64 [states], NaN if never left.

    The Good-Turing estimate: the share of steps whose outcome was seen just once, all sources and actions together.
    `observed` support assumes that this mass is zero.
    """
    if counts.population:
        raise ArgumentError("Population counts hold every outcome: there is nothing unseen to estimate.")
    known = counts.outcome_known
    rewards = counts.reward_min if all(counts.discrete_rewards) else np.zeros(len(counts))
    key = [column[known] for column in (counts.state, _where_it_led(counts), counts.terminated, rewards)]
    order, first = groups(key)
    n, state = np.add.reduceat(counts.n[known][order], first), key[0][order][first]
    total = np.bincount(state, n, minlength=len(counts.space.states))
    once = np.bincount(state, n == 1, minlength=len(counts.space.states))
    return np.where(total > 0, once / np.maximum(total, 1), np.nan)


def _where_it_led(counts: Counts) -> npt.NDArray[np.int32]:
    """Return the next state of each entry; of none that ended, if a source does not tell where its episodes end."""
    silent = (counts.terminated & (counts.next_state == UNKNOWN)).any()
    return np.where(counts.terminated, UNKNOWN, counts.next_state) if silent else counts.next_state


def contradictions(counts: Counts, level: float = LEVEL, seed: int = 0) -> list[Contradiction]:
    """Return where two sources show different outcomes after the same action in the same state.

    An unconfounded source shows what do(x) does, whatever its policy. So two unconfounded sources of one world show
    equal outcome distributions after (s, x), and a difference beyond chance proves that one of them is confounded.

    Per pair of sources and (s, x), Pearson's test of homogeneity. Where its approximate p-value is below 0.05 it is
    replaced by that of a permutation test, which is valid at any count: outcomes are dealt anew to the two sources
    until enough deals are as extreme. P-values are corrected for the number of tests by Holm's method, so the chance
    of any false report is at most `level`.

    Counts that keep steps apart are compared step by step. A (s, x) with unknown outcomes is left out: whether an
    outcome is known can depend on what it was.

    Args:
        counts: of a sample, two or more sources.
        level: the chance of any false report.
        seed: of the permutations.
    """
    if counts.population:
        raise ArgumentError("The test is for samples; population counts can be compared as they are.")
    cells = [
        (pair, cell) for pair in itertools.combinations(range(len(counts.sources)), 2) for cell in _cells(counts, *pair)
    ]
    rng = np.random.default_rng(seed)
    deals = math.ceil(4 * len(cells) / level)  # enough to fall below level / cells
    p_values = np.array([_p_value(cell.table, rng, deals) for _, cell in cells])
    order = np.argsort(p_values)
    adjusted, running = {}, 0.0
    for rank, position in enumerate(order):
        running = max(running, min(1.0, p_values[position] * (len(cells) - rank)))
        if running > level:
            break
        adjusted[position] = running
    return [_contradiction(counts, cells[position][0], cells[position][1], p) for position, p in adjusted.items()]


def comparable(counts: Counts) -> tuple[int, int]:
    """Return how many (pair of sources, state, action) `contradictions` can compare, and how many both sources took."""
    both = compared = 0
    step = _steps(counts)
    keys = [
        set(zip(*(column[counts.source == i].tolist() for column in (step, counts.state, counts.action)), strict=True))
        for i in range(len(counts.sources))
    ]
    for first, second in itertools.combinations(range(len(counts.sources)), 2):
        both += len(keys[first] & keys[second])
        compared += sum(1 for _ in _cells(counts, first, second))
    return compared, both


@dataclass(frozen=True)
class _Cell:
    """Outcomes of two sources after one (state, action), at one step if steps are kept apart."""

    step: int | None
    state: int
    action: int
    outcomes: list[tuple[int, bool, float]]
    table: FloatArray  # [2, outcomes]
    visits: tuple[float, float]  # of the state at that step, all actions


def _steps(counts: Counts) -> npt.NDArray[np.int64]:
    """Return the step of each entry, 0 if steps are pooled."""
    return np.zeros(len(counts), dtype=np.int64) if counts.step is None else counts.step.astype(np.int64)


def _cells(counts: Counts, first: int, second: int) -> Iterator[_Cell]:
    """Yield the (state, action), or (step, state, action), that both sources hold outcomes of."""
    rewards = counts.discrete_rewards[first] and counts.discrete_rewards[second]
    step = _steps(counts)
    visits = np.zeros((2, int(step.max(initial=0)) + 1, len(counts.space.states)))
    found: dict[tuple[int, int, int], dict[tuple[int, bool, float], list[float]]] = {}
    pair = np.isin(counts.source, (first, second))
    hidden = pair & ~counts.outcome_known
    unknown = set(zip(*(column[hidden].tolist() for column in (step, counts.state, counts.action)), strict=True))
    led = _where_it_led(counts)
    for row, source in enumerate((first, second)):
        here = counts.source == source
        np.add.at(visits[row], (step[here], counts.state[here]), counts.n[here])
        here &= counts.outcome_known
        columns = (step, counts.state, counts.action, led, counts.terminated, counts.reward_min, counts.n)
        for h, s, x, after, ended, reward, n in zip(*(column[here].tolist() for column in columns), strict=True):
            outcomes = found.setdefault((h, s, x), {})
            outcomes.setdefault((after, ended, reward if rewards else 0.0), [0.0, 0.0])[row] += n
    for (h, s, x), outcomes in found.items():
        table = np.array(list(outcomes.values())).T
        if (table.sum(axis=1) > 0).all() and (h, s, x) not in unknown:
            at = None if counts.step is None else h
            yield _Cell(at, s, x, list(outcomes), table, (visits[0, h, s], visits[1, h, s]))


def _statistic(first: npt.NDArray[Any], totals: FloatArray, share: float) -> Any:
    """Return Pearson's statistic of 2 x k tables, given the first row, the column totals and the first row's share."""
    expected = totals * share
    return ((first - expected) ** 2 / (expected * (1 - share))).sum(axis=-1)


def _p_value(table: FloatArray, rng: np.random.Generator, deals: int) -> float:
    """Return the p-value of the hypothesis that both rows come from one distribution."""
    totals, rows = table.sum(axis=0), table.sum(axis=1)
    if len(totals) == 1:
        return 1.0
    share = rows[0] / rows.sum()
    found = _statistic(table[0], totals, share)
    approximate = float(chi2.sf(found, len(totals) - 1))
    smallest = float(totals.min() * min(share, 1 - share))
    if approximate > CANDIDATE or (approximate < CERTAIN and smallest >= EXPECTED) or totals.sum() > MOST_DEALT:
        return approximate
    dealt, extreme = 0, 0
    while dealt < deals and extreme < EXCEEDANCES:
        size = min(max(1000, dealt), deals - dealt)
        draws = rng.multivariate_hypergeometric(totals.astype(np.int64), int(rows[0]), size=size, method="marginals")
        extreme += int((_statistic(draws, totals, share) >= found * (1 - 1e-12)).sum())
        dealt += size
    return (extreme + 1) / (dealt + 1)


def _contradiction(counts: Counts, pair: tuple[int, int], cell: _Cell, p_value: float) -> Contradiction:
    shares = cell.table / cell.table.sum(axis=1, keepdims=True)
    most = int(np.argmax(np.abs(shares[0] - shares[1]).round(12)))  # the first of equals
    after, ended, reward = cell.outcomes[most]
    where = "" if after == UNKNOWN else f" in {counts.space.states[after]}"
    same_place = sum(outcome[:2] == (after, ended) for outcome in cell.outcomes) > 1
    paid = f" with reward {reward:.6g}" if same_place else ""
    return Contradiction(
        first=counts.sources[pair[0]],
        second=counts.sources[pair[1]],
        state=counts.space.states[cell.state],
        action=counts.space.actions[cell.action],
        p_value=float(p_value),
        outcome=(f"ends{where}" if ended else f"leads to {counts.space.states[after]}") + paid,
        first_share=float(shares[0, most]),
        second_share=float(shares[1, most]),
        confounding=reconciling(cell.table, cell.visits),
        step=cell.step,
    )


def reconciling(table: FloatArray, visits: tuple[float, float], confidence: float = 0.95) -> float | None:
    """Return the smallest Gamma at which two sources can both be right about one (s, x).

    Under Gamma, do(x) gives outcome o a mass between L = p(o | x) (p(x) + (1 - p(x)) / Gamma) and
    U = p(o | x) (p(x) + (1 - p(x)) Gamma), for each source. The sources agree if some distribution lies within all of
    these. Probabilities are replaced by simultaneous exact binomial limits, so that chance alone does not separate the
    sources; an outcome that neither saw is allowed for.

    Args:
        table: how often each outcome followed (s, x), float [sources, outcomes].
        visits: how often each source was in s.
        confidence: of all limits together.

    Returns:
        1 or more, inf if only unlimited confounding will do, None if not even that.
    """
    held = np.concatenate([table, np.zeros((len(table), 1))], axis=1)  # and one outcome that nobody saw
    taken, total = table.sum(axis=1, keepdims=True), np.asarray(visits, dtype=np.float64)[:, None]
    alpha = (1 - confidence) / (2 * held.size + len(table))
    low, high = lower_limit(held, taken, alpha), upper_limit(held, taken, alpha)
    often = lower_limit(taken, total, alpha)

    def agrees(gamma: float) -> bool:
        least = low * (often + (1 - often) / gamma)
        most = np.minimum(1.0, high * (often + (1 - often) * gamma)) if math.isfinite(gamma) else np.ones_like(high)
        floor, ceiling = least.max(axis=0), most.min(axis=0)
        return bool((floor <= ceiling).all() and floor.sum() <= 1 <= ceiling.sum())

    if agrees(1.0):
        return 1.0
    if not agrees(MOST_CONFOUNDING):
        return math.inf if agrees(math.inf) else None
    below, above = 0.0, math.log(MOST_CONFOUNDING)
    while above - below > 1e-9:
        middle = (below + above) / 2
        below, above = (below, middle) if agrees(math.exp(middle)) else (middle, above)
    return math.exp(above)
