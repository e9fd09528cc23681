"""Where two sources cannot both be unconfounded.

- `contradictions`: the states and actions after which two sources show outcomes that differ by more than chance.
- `reconciling`: the smallest confounding at which both can be right.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from causal_shaping._checks import check_probability
from causal_shaping.bounds._compare import known_next_state
from causal_shaping.bounds._limits import lower_limit, upper_limit
from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.result import ResultSequence
from causal_shaping.data.space import UNKNOWN, Label
from causal_shaping.data.words import state_text
from causal_shaping.diagnose.small_cells import SmallCells
from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05
"""The chance that `contradictions` names anything at all where all sources are unconfounded."""

CANDIDATE = 0.05
"""Approximate p-values above this are kept; below, they are replaced by those of a permutation test."""

CERTAIN = 1e-12
EXPECTED = 10
"""Approximate p-values below `CERTAIN`, with no expected count below `EXPECTED`, need no permutation test."""

MOST_DEALT = 1e9
"""With more outcomes than this a permutation test takes too long, and the approximation is as good."""

EXCEEDANCES = 20
"""A permutation test stops when this many permutations were at least as extreme (Besag and Clifford 1991)."""

MOST_CONFOUNDING = 1e6
"""Confounding beyond this is called infinite."""


@dataclass(frozen=True)
class Contradiction:
    """A (state, action) after which two sources show outcomes that differ by more than chance.

    At least one of the two is confounded there, or they did not watch the same world.

    Attributes:
        first: a source.
        second: the other.
        state: label of the state.
        where: the state in words.
        action: label of the action.
        p_value: of the homogeneity test, corrected for all tests that were made (Holm).
        outcome: the outcome that differs most, in words.
        first_share: how often it follows in the first source.
        second_share: how often it follows in the second.
        visits: how many steps each of the two shares is of.
        confounding: the smallest Gamma at which both sources are possible, sampling error allowed for at 95%; inf if
            only unlimited confounding reconciles them, None if nothing does.
        step: at which step, counted from 0, of step-indexed counts; None if steps are pooled.
    """

    first: str
    second: str
    state: Label
    where: str
    action: Label
    p_value: float
    outcome: str
    first_share: float
    second_share: float
    visits: tuple[int, int]
    confounding: float | None
    step: int | None = None

    def describe(self, cells: SmallCells) -> str:
        """Return it in words; shares that would give a small count away are withheld."""
        if self.confounding is None:
            reconciled = "No confounding reconciles them (at 95% confidence): they did not watch the same world."
        else:
            much = "a little confounding" if self.confounding == 1 else f"a confounding of {self.confounding:.3g}"
            much = "some confounding" if self._is_small(cells) else much  # how much would tell the shares
            limit = ", without limit" if math.isinf(self.confounding) else f"; {much} reconciles them"
            reconciled = f"At least one of them is confounded there{limit}."
        when = "" if self.step is None else f" at step {self.step}"
        shares = " against ".join(
            f"a share that is {cells.share(0, share * n, n)}"
            if cells.hides_share(round(share * n), n)
            else f"{share:.0%}"
            for share, n in zip((self.first_share, self.second_share), self.visits, strict=True)
        )
        return (
            f"{self.first} and {self.second} disagree on what {self.action} does in {self.where}{when}: it "
            f"{self.outcome} in {shares}. {reconciled}"
        )

    def _is_small(self, cells: SmallCells) -> bool:
        shares = zip((self.first_share, self.second_share), self.visits, strict=True)
        return any(cells.hides_share(round(share * n), n) for share, n in shares)

    def __str__(self) -> str:
        return self.describe(SmallCells())


@dataclass(frozen=True, eq=False, repr=False)
class Contradictions(ResultSequence[Contradiction]):
    """Where sources contradict each other: a sequence of `Contradiction`, the surest first.

    Attributes:
        items: the contradictions.
        sources: the names of all sources that were compared.
        level: the chance of any false report.
        compared: how many (pair of sources, state, action) were compared.
        shared: how many both sources of a pair took; what was not compared holds rows without a known outcome.
        smallest_cell: counts below are hidden, see `SmallCells`; None shows all.
    """

    items: tuple[Contradiction, ...]
    sources: tuple[str, ...]
    level: float
    compared: int
    shared: int
    smallest_cell: int | None = None

    def findings(self) -> list[str]:
        """Return what was found, in sentences."""
        if len(self.sources) == 1:
            return ["With one source there is nothing to compare: confounding cannot be tested for."]
        if self.items:
            head = f"{len(self.items)} contradiction{'' if len(self.items) == 1 else 's'} between sources:"
            return [head, *(item.describe(SmallCells(self.smallest_cell)) for item in self.items)]
        result = "No two sources contradict each other. That does not prove that they are unconfounded."
        if self.compared < self.shared:
            result += f" {self.compared} of {self.shared} state-actions that two sources took were compared; "
            result += "the others hold rows without a known outcome."
        return [result]

    def summary(self) -> str:
        """Return what was found, a sentence a line."""
        return "\n".join(self.findings())

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per contradiction; shares that would give a small count away are missing."""
        import pandas as pd

        rows = self.as_plain()
        for row in rows:
            row["first_visits"], row["second_visits"] = row.pop("visits")
        names = [field.name for field in fields(Contradiction) if field.name != "visits"]
        return pd.DataFrame(rows, columns=[*names, "first_visits", "second_visits", "text"])

    def as_plain(self) -> list[dict[str, Any]]:
        """Return everything as plain values, for JSON."""
        cells, result = SmallCells(self.smallest_cell), []
        for item in self.items:
            row = asdict(item) | {"text": item.describe(cells)}
            for name, n in zip(("first_share", "second_share"), item.visits, strict=True):
                row[name] = None if cells.hides_share(round(row[name] * n), n) else cells.rounded(row[name])
            if self.smallest_cell is not None:  # what is left of the visits to the state could be a small cell
                row["visits"] = [None, None]
                row["p_value"] = float(f"{item.p_value:.1g}")
                row["confounding"] = item.confounding and float(f"{item.confounding:.2g}")
            if item._is_small(cells):
                row["p_value"] = row["confounding"] = None
            result.append(row)
        return result

    def __repr__(self) -> str:
        return f"Contradictions({len(self.items)} in {self.compared} comparisons of {', '.join(self.sources)})"


def contradictions(counts: Counts, *, level: float = LEVEL, seed: int = 0) -> Contradictions:
    """Return where two sources show different outcomes after the same action in the same state.

    An unconfounded source shows what do(x) does, whatever its policy. So two unconfounded sources of one world show
    equal outcome distributions after (s, x), and a difference beyond chance proves that one of them is confounded.

    Per pair of sources and (s, x), Pearson's test of homogeneity. Where its approximate p-value is below 0.05 it is
    replaced by that of a permutation test, which is valid at any count: outcomes are dealt to the two sources at
    random until enough deals are as extreme. P-values are corrected for the number of tests by Holm's method, so the
    chance of any false report is at most `level`.

    Step-indexed counts are compared step by step. A (s, x) with unknown outcomes is left out: whether an outcome is
    known can depend on what it was.

    Args:
        counts: of a sample; with one source there is nothing to compare.
        level: the chance of any false report.
        seed: of the permutations.
    """
    if counts.population:
        raise ArgumentError("The test is for samples; population counts can be compared as they are.")
    check_probability("level", level, example="0.05")
    pairs = itertools.combinations(range(len(counts.sources)), 2)
    shared = [cell for pair in pairs for cell in _shared_cells(counts, pair)]
    cells = [cell for cell in shared if all(after != UNKNOWN or ended for after, ended, _ in cell.outcomes)]
    rng = np.random.default_rng(seed)
    deals = math.ceil(4 * len(cells) / level)  # enough to fall below level / cells
    p_values = np.array([_p_value(cell.table, rng, deals) for cell in cells])
    found, running = [], 0.0
    for rank, position in enumerate(np.argsort(p_values)):
        running = max(running, min(1.0, p_values[position] * (len(cells) - rank)))
        if running > level:
            break
        found.append(_contradiction(counts, cells[position], running))
    return Contradictions(tuple(found), counts.sources, level, len(cells), len(shared))


class _Cell(NamedTuple):
    """Outcomes of two sources after one (state, action), at one step if the counts are step-indexed."""

    pair: tuple[int, int]
    step: int | None
    state: int
    action: int
    outcomes: list[tuple[int, bool, float]]
    table: FloatArray  # [2, outcomes]
    visits: tuple[float, float]  # of the state at that step, all actions


def _shared_cells(counts: Counts, pair: tuple[int, int]) -> Iterator[_Cell]:
    """Yield the (state, action), or (step, state, action), that both sources took."""
    rewards = counts.discrete_rewards
    step = np.zeros(len(counts), dtype=np.int64) if counts.step is None else counts.step
    visits = np.zeros((2, int(step.max(initial=0)) + 1, len(counts.space.states)))
    found: dict[tuple[int, int, int], dict[tuple[int, bool, float], list[float]]] = {}
    after_state = known_next_state(counts)
    columns = (step, counts.state, counts.action, after_state, counts.terminated, counts.reward_min, counts.n)
    for row, source in enumerate(pair):
        here = counts.source == source
        np.add.at(visits[row], (step[here], counts.state[here]), counts.n[here])
        for h, s, x, after, ended, reward, n in zip(*(column[here].tolist() for column in columns), strict=True):
            outcomes = found.setdefault((h, s, x), {})
            outcomes.setdefault((after, ended, reward if rewards else 0.0), [0.0, 0.0])[row] += n
    for (h, s, x), outcomes in found.items():
        table = np.array(list(outcomes.values())).T
        if (table.sum(axis=1) > 0).all():
            at = None if counts.step is None else h
            yield _Cell(pair, at, s, x, list(outcomes), table, (visits[0, h, s], visits[1, h, s]))


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
    approximate = float(chdtrc(len(totals) - 1, found))
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


def _contradiction(counts: Counts, cell: _Cell, p_value: float) -> Contradiction:
    shares = cell.table / cell.table.sum(axis=1, keepdims=True)
    most = int(np.argmax(np.abs(shares[0] - shares[1]).round(12)))  # the first of equals
    after, ended, reward = cell.outcomes[most]
    place = "" if after == UNKNOWN else state_text(counts.space, after)
    same_place = sum(outcome[:2] == (after, ended) for outcome in cell.outcomes) > 1
    paid = f" with reward {reward:.6g}" if same_place else ""
    return Contradiction(
        first=counts.sources[cell.pair[0]],
        second=counts.sources[cell.pair[1]],
        state=counts.space.states[cell.state],
        where=state_text(counts.space, cell.state),
        action=counts.space.actions[cell.action],
        p_value=float(p_value),
        outcome=("ends" + (f" in {place}" if place else "") if ended else f"leads to {place}") + paid,
        first_share=float(shares[0, most]),
        second_share=float(shares[1, most]),
        visits=(int(cell.table[0].sum()), int(cell.table[1].sum())),
        confounding=reconciling(cell.table, cell.visits),
        step=cell.step,
    )


def reconciling(table: FloatArray, visits: tuple[float, float], confidence: float = 0.95) -> float | None:
    """Return the smallest Gamma at which two sources can both be right about one (s, x).

    Under Gamma, do(x) gives outcome o a mass between L = p(o | x) (p(x) + (1 - p(x)) / Gamma) and
    U = p(o | x) (p(x) + (1 - p(x)) Gamma), for each source. The sources agree if some distribution lies within all of
    these. Probabilities are replaced by simultaneous exact binomial limits, so that chance alone does not separate the
    sources; an outcome that neither saw is allowed for. Returns inf if only unlimited confounding will do, None if not
    even that.

    Args:
        table: how often each outcome followed (s, x), float [sources, outcomes].
        visits: how often each source was in s.
        confidence: of all limits together.
    """
    held = np.concatenate([table, np.zeros((len(table), 1))], axis=1)  # and one outcome that nobody saw
    taken, total = table.sum(axis=1, keepdims=True), np.asarray(visits, dtype=np.float64)[:, None]
    alpha = (1 - confidence) / (2 * held.size + len(table))
    low, high = lower_limit(held, taken, alpha), upper_limit(held, taken, alpha)
    propensity = lower_limit(taken, total, alpha)

    def agrees(gamma: float) -> bool:
        least = low * (propensity + (1 - propensity) / gamma)
        most = np.ones_like(high)
        if math.isfinite(gamma):
            most = np.minimum(1.0, high * (propensity + (1 - propensity) * gamma))
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
