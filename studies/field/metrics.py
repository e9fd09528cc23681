"""Measures over cases: pure functions of results.

Regret is compared within a case: the regret of a run over the mean regret of the learner without logs in the same
world, which is 1 for no logs. What is saved is 1 less that.

- `Compared`: the runs of a method beside those without logs, over cases.
- `harm`, `claims_held`, `worth_scores`: how often logs cost, whether claims hold, whether worth was foretold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.learners.intervals import LEVEL, Interval
from causal_shaping.learners.worth import saved_share
from studies.field.plan import BASELINE, METHODS, RECOMMENDED
from studies.field.run import Results, Row
from studies.statistics import interquartile_mean, probability_of_improvement

RESAMPLES = 2_000
NEARLY, WINDOW = 0.1, 4
"""An agent is at 90% of the optimum once it loses at most this share of what acting at random loses, over the next so
many of the points at which regret is kept."""

MUCH = 1.1
"""Logs do harm in a case if the regret is more than this times that without logs."""


@dataclass(frozen=True, eq=False)
class Compared:
    """The runs of a method and those without logs, over cases of as many seeds each (a separate method has fewer).

    Attributes:
        cases: a row of results for each case.
        regret: float64 [seeds, cases].
        baseline: the same for the learner without logs.
        random: what acting at random loses: float64 [cases].
        until: the steps until 90% of the optimum as a share of the budget, NaN if never: float64 [seeds, cases].
    """

    cases: Sequence[Row]
    regret: FloatArray
    baseline: FloatArray
    random: FloatArray
    until: FloatArray

    @property
    def ratios(self) -> FloatArray:
        """The regret over the mean regret without logs: float64 [seeds, cases]."""
        return _ratios(self.regret, self.baseline)

    @property
    def ratio(self) -> FloatArray:
        """Means over seeds: float64 [cases]."""
        return np.asarray(self.ratios.mean(axis=0))

    def where(self, chosen: Callable[[Row], bool]) -> Compared:
        """Return some of the cases."""
        kept = np.array([chosen(case) for case in self.cases], dtype=bool)
        cases = [case for case, keep in zip(self.cases, kept, strict=True) if keep]
        return Compared(cases, self.regret[:, kept], self.baseline[:, kept], self.random[kept], self.until[:, kept])

    def interval(self, statistic: Callable[[FloatArray], FloatArray], *, worlds: bool = True) -> Interval:
        """Return a statistic of the ratios [..., seeds, cases] and its 95% interval over worlds and seeds.

        Cases are drawn again, and in each of them the seeds, with logs and without; or the seeds only.
        """
        estimate = float(statistic(self.ratios))
        rng, cases = np.random.default_rng(0), self.regret.shape[1]
        which = rng.integers(cases, size=(RESAMPLES, 1, cases)) if worlds else np.arange(cases)[None, None]
        regret, baseline = (
            table[rng.integers(len(table), size=(RESAMPLES, *table.shape)), which]
            for table in (self.regret, self.baseline)
        )
        low, high = np.quantile(statistic(_ratios(regret, baseline)), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        return estimate, float(low), float(high)

    def improvement(self) -> float:
        """Return the chance that a run has less regret than one without logs, a mean over cases."""
        return float(probability_of_improvement(self.regret, self.baseline))


def _ratios(regret: FloatArray, baseline: FloatArray) -> FloatArray:
    mean = np.maximum(baseline.mean(axis=-2, keepdims=True), 1e-12)
    return np.asarray(regret / mean)


def mean_ratio(ratios: FloatArray) -> FloatArray:
    """Return the mean over seeds and cases: float64 [...] of [..., seeds, cases]."""
    return np.asarray(ratios.mean(axis=(-2, -1)))


def worst_decile(ratios: FloatArray) -> FloatArray:
    """Return what nine of ten cases stay below, seeds averaged: float64 [...] of [..., seeds, cases]."""
    return np.asarray(np.quantile(ratios.mean(axis=-2), 0.9, axis=-1))


middle = interquartile_mean


def compared(results: Results, family: str, method: str) -> Compared | None:
    """Return a method beside no logs in a family; None if there are no runs of both.

    A method without logs has one case for each world.
    """
    runs: dict[tuple[str, str], list[Row]] = {}
    for row in results.runs:
        if row["family"] == family:
            key = row["place"] if not METHODS[row["name"]].uses_logs else row["case"]
            runs.setdefault((row["name"], key), []).append(row)
    found = [
        (rows, runs[BASELINE, rows[0]["place"]])
        for (name, _), rows in runs.items()
        if name == method and (BASELINE, rows[0]["place"]) in runs
    ]
    if not found:
        return None
    regret, baseline = ([[row["regret"] for row in pair[i]] for pair in found] for i in (0, 1))
    until = [[until_nearly_optimal(row["curve"], row["at_random"]) for row in rows] for rows, _ in found]
    cases = [rows[0] for rows, _ in found]
    random = np.array([case["at_random"] for case in cases])
    return Compared(cases, np.array(regret).T, np.array(baseline).T, random, np.array(until, dtype=float).T)


def until_nearly_optimal(curve: Sequence[float], at_random: float) -> float:
    """Return when a run is at 90% of the optimum, as a share of the budget; NaN if never.

    Args:
        curve: the regret after each part of the budget, parts of equal length.
        at_random: what acting at random loses in all of it.
    """
    course = np.append(0.0, curve)
    lost = course[WINDOW:] - course[:-WINDOW]
    reached = np.flatnonzero(lost <= NEARLY * at_random * WINDOW / len(curve))
    return float(reached[0]) / len(curve) if len(reached) else float("nan")


class Harm(NamedTuple):
    """How often logs cost more than they save: cases, and in how many the mean, and the whole interval, is above."""

    cases: int
    on_average: int
    surely: int


def harm(some: Compared) -> Harm:
    """Count the cases whose regret is more than `MUCH` times that without logs: its mean, or its 95% interval, too."""
    surely = 0
    for i in np.flatnonzero(some.ratio > MUCH).tolist():
        alone = Compared(
            [some.cases[i]], some.regret[:, [i]], some.baseline[:, [i]], some.random[[i]], some.until[:, [i]]
        )
        surely += alone.interval(mean_ratio, worlds=False)[1] > MUCH
    return Harm(len(some.cases), int((some.ratio > MUCH).sum()), int(surely))


class Held(NamedTuple):
    """How a claim fared: in how many cases it was made and its assumptions are true, and in how many it is false."""

    claim: str
    confidence: float | None
    cases: int
    false: int
    chance: float
    """The chance of so many false ones or more, if each is false with the chance that the confidence leaves."""

    distance: float


def claims_held(rows: Iterable[Row]) -> list[Held]:
    """Return how each kind of claim fared where its assumptions are true."""
    from scipy.special import bdtrc

    by_claim: dict[str, list[Row]] = {}
    for row in rows:
        if row["assumed"] and row["violations"] is not None:
            by_claim.setdefault(row["claim"], []).append(row)
    found = []
    for claim, some in by_claim.items():
        false, level = sum(row["violations"] > 0 for row in some), some[0]["confidence"]
        chance = 1.0 if false == 0 or level is None else float(bdtrc(false - 1, len(some), 1 - level))
        distances = [row["distance"] for row in some if row.get("distance") is not None]
        distance = float(np.median(distances)) if distances else float("nan")
        found.append(Held(claim, level, len(some), false, chance, distance))
    return found


class Foretold(NamedTuple):
    """Predicted and realised savings of cases, from -1 to 1."""

    predicted: FloatArray
    realised: FloatArray
    families: Sequence[str]

    @property
    def rank_correlation(self) -> float:
        """Spearman's."""
        from scipy.stats import spearmanr

        return float(spearmanr(self.predicted, self.realised).statistic) if len(self.predicted) > 2 else float("nan")

    @property
    def sign_right(self) -> float:
        """In which share of the cases logs help, or cost, as was predicted."""
        return (
            float((np.sign(self.predicted) == np.sign(self.realised)).mean()) if len(self.predicted) else float("nan")
        )


def worth_scores(results: Results) -> Foretold:
    """Return what was predicted of the learner that is recommended, and what came of it, for each case with both."""
    held: dict[tuple[str, str], tuple[float, Any]] = {}
    for family in dict.fromkeys(row["family"] for row in results.worths):
        some = compared(results, family, RECOMMENDED)
        if some is not None:
            for i, case in enumerate(some.cases):
                sums = float(some.baseline[:, i].sum()), float(some.regret[:, i].sum())
                held[family, case["case"]] = saved_share(*sums), case
    pairs = [
        (row["predicted"], held[key][0], key[0])
        for row in results.worths
        if (key := (row["family"], row["case"])) in held
    ]
    predicted, realised, families = zip(*pairs, strict=True) if pairs else ((), (), ())
    return Foretold(np.array(predicted), np.array(realised), families)
