"""Measures over cases, and the tables of the field study.

Regret is compared within a case: the regret of a run over the mean regret of the learner without logs in the same
world, which is 1 for no logs. What is saved is 1 less that.

- `Compared`: the runs of a method beside those without logs, over cases.
- `harm`, `claims_held`, `worth_scores`: how often logs cost, whether claims hold, whether worth was foretold.
- `all_tables`: a family's methods; the same by how confounded the logs are; claims, and whether they are true.
- `targets`: what was asked of the recommended learner, and what came of it.
- `decisions`: what to use when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc
from scipy.stats import spearmanr

from causal_shaping.data.arrays import FloatArray
from causal_shaping.learners.intervals import LEVEL, Interval
from causal_shaping.learners.worth import saved_share
from studies.field.demonstrators import CONFOUNDING
from studies.field.methods import BASELINE, METHODS, RECOMMENDED
from studies.field.plan import FAMILIES
from studies.field.run import Results, Row
from studies.pages import NOTHING, Table, interval_text

# Measures -------------------------------------------------------------------------------------------------------------

RESAMPLES = 2_000
MUCH = 1.1
"""Logs do harm in a case if the regret is more than this times that without logs."""


@dataclass(frozen=True, eq=False)
class Compared:
    """The runs of a method and those without logs, over cases of as many seeds each.

    Attributes:
        cases: a row of results for each case.
        regret: float64 [seeds, cases].
        baseline: the same for the learner without logs.
    """

    cases: Sequence[Row]
    regret: FloatArray
    baseline: FloatArray

    @property
    def ratio(self) -> FloatArray:
        """The regret over the mean regret without logs, a mean over seeds: float64 [cases]."""
        return np.asarray(_ratios(self.regret, self.baseline).mean(axis=0))

    @property
    def worst_decile(self) -> float:
        """What nine of ten cases stay below."""
        return float(np.quantile(self.ratio, 0.9))

    def only(self, kept: Sequence[int]) -> Compared:
        """Return the cases of some places."""
        return Compared([self.cases[i] for i in kept], self.regret[:, kept], self.baseline[:, kept])

    def at(self, levels: Iterable[str]) -> Compared:
        """Return the cases of some confounding."""
        return self.only([i for i, case in enumerate(self.cases) if case["confounding"] in levels])

    def interval(self, *, worlds: bool = True) -> Interval:
        """Return the mean ratio and its 95% interval over worlds and seeds.

        Cases are drawn again, and in each of them the seeds, with logs and without; or the seeds only.
        """
        rng, cases = np.random.default_rng(0), self.regret.shape[1]
        which = rng.integers(cases, size=(RESAMPLES, 1, cases)) if worlds else np.arange(cases)[None, None]
        regret, baseline = (
            table[rng.integers(len(table), size=(RESAMPLES, *table.shape)), which]
            for table in (self.regret, self.baseline)
        )
        means = _ratios(regret, baseline).mean(axis=(-2, -1))
        low, high = np.quantile(means, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        return float(self.ratio.mean()), float(low), float(high)


def _ratios(regret: FloatArray, baseline: FloatArray) -> FloatArray:
    mean = np.maximum(baseline.mean(axis=-2, keepdims=True), 1e-12)
    return np.asarray(regret / mean)


def compared(results: Results, family: str, method: str) -> Compared | None:
    """Return a method beside no logs in a family; None if there are no runs of both.

    A method without logs has one case for each world.
    """
    cases: dict[str, list[Row]] = {}
    without: dict[str, list[float]] = {}
    for row in results.runs:
        if row["family"] == family and row["name"] == method:
            cases.setdefault(row["case"], []).append(row)
        if row["family"] == family and row["name"] == BASELINE:
            without.setdefault(row["place"], []).append(row["regret"])
    found = [rows for rows in cases.values() if rows[0]["place"] in without]
    if not found:
        return None
    regret = np.array([[row["regret"] for row in rows] for rows in found], dtype=float).T
    baseline = np.array([without[rows[0]["place"]] for rows in found], dtype=float).T
    return Compared([rows[0] for rows in found], regret, baseline)


def harm(some: Compared) -> tuple[int, int]:
    """Count the cases whose regret is more than `MUCH` times that without logs: its mean; and its 95% interval, too."""
    worse = np.flatnonzero(some.ratio > MUCH).tolist()
    return len(worse), sum(some.only([i]).interval(worlds=False)[1] > MUCH for i in worse)


class Held(NamedTuple):
    """How a claim fared: in how many cases it was made, and in how many it is false."""

    claim: str
    confidence: float | None
    cases: int
    false: int
    chance: float
    """The chance of so many false ones or more, if each is false with the chance that the confidence leaves."""

    distance: float


def claims_held(results: Results) -> list[Held]:
    """Return how each kind of claim about V* fared."""
    by_claim: dict[str, list[Row]] = {}
    for row in results.claims:
        if row["family"] in LEARNED:
            by_claim.setdefault(row["claim"], []).append(row)
    found = []
    for claim, some in by_claim.items():
        false, level = sum(row["violations"] > 0 for row in some), some[0]["confidence"]
        chance = 1.0 if false == 0 or level is None else float(bdtrc(false - 1, len(some), 1 - level))
        found.append(Held(claim, level, len(some), false, chance, float(np.median([row["distance"] for row in some]))))
    return found


def worth_scores(results: Results) -> tuple[FloatArray, FloatArray]:
    """Return the predicted savings of the recommended learner, from -1 to 1, and those that came of it."""
    saved: dict[tuple[str, str], float] = {}
    for family in dict.fromkeys(row["family"] for row in results.worths):
        some = compared(results, family, RECOMMENDED)
        for i, case in enumerate(some.cases if some else []):
            saved[family, case["case"]] = saved_share(some.baseline[:, i].sum(), some.regret[:, i].sum())
    found = [row for row in results.worths if (row["family"], row["case"]) in saved]
    realised = [saved[row["family"], row["case"]] for row in found]
    return np.array([row["predicted"] for row in found]), np.array(realised)


# Tables ---------------------------------------------------------------------------------------------------------------

LEARNED = ("random", "problems", "sepsis")
"""The families in which learners run."""


def ran(results: Results) -> list[str]:
    """Return the families that there are runs of, in the order of the plan."""
    held = {row["family"] for row in results.runs}
    return [name for name in LEARNED if name in held]


def all_tables(results: Results) -> Iterator[Table]:
    """Yield the tables that results have rows for."""
    made = [family_table(results, family) for family in ran(results)]
    made += [make(results) for make in (confounding_table, claims_table, clinic_table)]
    yield from (one for one in made if one.rows)


def _table(name: str, title: str, caption: str, columns: list[str], rows: list[list[str]]) -> Table:
    return Table(name, title, caption, columns, rows, [dict(zip(columns, row, strict=True)) for row in rows])


def _title(name: str) -> str:
    return f"{METHODS[name].title}{' (ours)' if METHODS[name].ours else ''}"


def family_table(results: Results, family: str) -> Table:
    """All methods in a family."""
    rows = []
    for method in METHODS:
        some = compared(results, family, method)
        if some is None:
            continue
        cases, (hurt, surely) = len(some.cases), harm(some)
        spent = [row["cpu_seconds"] for row in results.timings if (row["family"], row["name"]) == (family, method)]
        rows.append(
            [
                _title(method),
                interval_text(some.interval(), 2),
                f"{some.worst_decile:.2f}",
                NOTHING if method == BASELINE else f"{hurt / cases:.0%}, surely {surely / cases:.0%}",
                f"{np.mean(spent) / len(some.regret):.2f}",
            ]
        )
    return _table(
        f"family-{family}",
        FAMILIES[family].title,
        "Regret over that of posterior sampling without logs, which is 1: the mean over cases and seeds with its 95% "
        "bootstrap interval over worlds and seeds; the worst decile of cases; cases whose regret is more than 1.1 "
        "times that without logs, on average, and with its whole interval; CPU seconds of a run, preparation included.",
        ["", "mean", "worst decile", "harmed", "CPU s"],
        rows,
    )


def confounding_table(results: Results) -> Table:
    """All methods that use logs, by how confounded these are, over all families with learners."""
    rows = []
    for name, method in METHODS.items() if results.runs else ():
        if method.uses_logs:
            ratios = [ratios_at(results, name, level) for level in CONFOUNDING]
            cells = [f"{one.mean():.2f}\n{(one > MUCH).mean():.0%} harmed" if len(one) else NOTHING for one in ratios]
            rows.append([_title(name), *cells])
    return _table(
        "confounding",
        "By how confounded the logs are",
        "Regret over that of posterior sampling without logs, a mean over all cases of all families with learners, and "
        "the share of cases in which it is more than 1.1 times that.",
        ["", *CONFOUNDING],
        rows,
    )


def ratios_at(results: Results, method: str, *levels: str) -> FloatArray:
    """Return the regret over that without logs in all cases of some confounding."""
    found = [compared(results, family, method) for family in ran(results)]
    return np.concatenate([np.zeros(0), *(one.at(levels).ratio for one in found if one is not None)])


def claims_table(results: Results) -> Table:
    """Whether bounds hold in the families with learners."""
    rows = []
    for one in claims_held(results):
        level, chance = (NOTHING, NOTHING) if one.confidence is None else (f"{one.confidence:.0%}", f"{one.chance:.2f}")
        rows.append([one.claim, level, str(one.cases), str(one.false), chance, f"{one.distance:.2f}"])
    return _table(
        "claims",
        "Claimed bounds against V*",
        "Each is a claim about all steps and states of a world at once. Cases, and in how many of them it is false "
        "somewhere; the chance of so many or more if the confidence is right; the median "
        "distance to V* at the first step, over the largest V*. Plug-in ceilings are no claims.",
        ["", "confidence", "cases", "false", "chance", "distance"],
        rows,
    )


def clinic_table(results: Results) -> Table:
    """What each tool claims of a clinic with a hidden cause that lasts."""
    places: dict[str, dict[str, Row]] = {}
    for row in results.claims:
        if row["family"] == "clinic":
            tool, place = row["claim"].split(": ")
            places.setdefault(place, {})[tool] = row

    def cell(row: Row) -> str:
        return f"{row['high']:.2f}{' (too low)' if row['high'] < row['truth'] - 1e-9 else ''}"

    rows, tools = [], list(next(iter(places.values()), {}))
    for place, held in places.items():
        first = held[tools[0]]
        flagged = "flagged" if first["flagged"] else NOTHING
        rows.append([place, f"{first['truth']:.2f}", *(cell(held[tool]) for tool in tools), flagged])
    return _table(
        "clinic",
        FAMILIES["clinic"].title,
        "The most that a stay of three days can earn, what each tool says of it, and whether the test of persistence "
        "flags the logs at a level of 5%. Ceilings assume that a cause is drawn afresh each day.",
        ["clinic", "truth", *tools, "test"],
        rows,
    )


def targets(results: Results) -> list[tuple[str, str, bool | None]]:
    """Return what was asked of the recommended learner: the target, what came of it, and whether it is met."""
    found = {name: compared(results, name, RECOMMENDED) for name in ran(results)}
    some = {name: one for name, one in found.items() if one is not None}
    if not some:
        return []
    saved = {name: 1 - float(one.ratio.mean()) for name, one in some.items()}
    average = float(np.mean(list(saved.values())))
    peaceful = [one for own in some.values() if (one := own.at(PEACEFUL)).cases]
    cases = sum(len(one.cases) for one in peaceful)
    mean, surely = np.sum([harm(one) for one in peaceful], axis=0, dtype=int) if peaceful else (0, 0)
    against = ratios_at(results, RECOMMENDED, "hostile")
    predicted, realised = worth_scores(results)
    correlation = float(spearmanr(predicted, realised).statistic) if len(predicted) > 2 else float("nan")
    right = float((np.sign(predicted) == np.sign(realised)).mean()) if len(predicted) else float("nan")
    held = claims_held(results)
    broken = [one.claim for one in held if one.confidence is not None and one.chance < 0.05]
    rivals = _rivals(results, some)
    return [
        (
            "saves at least 40% of the regret without logs, averaged over families",
            f"{average:.0%} ({', '.join(f'{name} {share:.0%}' for name, share in saved.items())}); "
            f"without hostile logs {np.mean([1 - one.ratio.mean() for one in peaceful]):.0%}",
            average >= 0.4,
        ),
        (
            "harms in at most 5% of the cases that are not hostile (interval above 1.1)",
            f"{surely} of {cases} ({surely / max(cases, 1):.0%}); with a mean above 1.1: {mean / max(cases, 1):.0%}",
            bool(surely <= 0.05 * cases),
        ),
        (
            "hostile logs cost at most a quarter more, on average",
            f"{against.mean():.2f} times over {len(against)} cases" if len(against) else "no cases",
            bool(against.mean() <= 1.25) if len(against) else None,
        ),
        (
            "rank correlation of predicted and realised worth of at least 0.8",
            f"{correlation:.2f} over {len(predicted)} cases",
            correlation >= 0.8,
        ),
        ("its sign right in at least 90%", f"{right:.0%}", right >= 0.9),
        ("no claimed bound false beyond its confidence", "; ".join(broken) or "none", not broken if held else None),
        ("beats every rival's mean and worst decile in each family", rivals or "yes", not rivals),
    ]


def _rivals(results: Results, ours: dict[str, Compared]) -> str:
    """Return the rivals that are ahead of the recommended learner, by family."""
    ahead = []
    for family, own in ours.items():
        for method in METHODS:
            other = None if METHODS[method].ours else compared(results, family, method)
            if other is not None:
                better = ["mean"] if other.ratio.mean() < own.ratio.mean() else []
                better += ["worst decile"] if other.worst_decile < own.worst_decile else []
                ahead += [f"{family}: {method} ({', '.join(better)})"] if better else []
    return "; ".join(ahead)


PEACEFUL = ("none", "mild", "strong")
"""Logs that are not hostile."""

SITUATIONS = (
    ("Nothing can be hidden from the log: whoever acted saw no more than it holds.", ["none"], None),
    ("Whoever acted may have seen more, and nobody set the logs against the truth.", ["mild", "strong"], None),
    ("Logs may be set against the truth.", ["hostile"], None),
    (
        "An agent of another kind is to be helped by its reward alone.",
        list(CONFOUNDING),
        ("paper", "behaviour", "ceilings", "guess"),
    ),
)
"""Situations, how confounded logs are there, and which methods can be used; None for all."""


def decisions(results: Results) -> Iterator[tuple[str, str, str]]:
    """Yield what to use when: the situation, the method with the least mean regret there, and the evidence."""
    for situation, levels, allowed in SITUATIONS:
        usable = [name for name, one in METHODS.items() if one.uses_logs and (allowed is None or name in allowed)]
        found = {name: ratios for name in usable if len(ratios := ratios_at(results, name, *levels))}
        ranked = sorted(found, key=lambda name: found[name].mean())
        if ranked:
            told = [_evidence(name, found[name]) for name in ranked]
            evidence = [told[0], *(f"next is {one}" for one in told[1:2])]
            evidence += [told[i] for i, name in enumerate(ranked) if i > 1 and name == RECOMMENDED]
            first = ranked[0]
            yield situation, METHODS[first].title, f"{'; '.join(evidence)} ({len(found[first])} cases)"


def _evidence(name: str, ratios: FloatArray) -> str:
    harmed = (ratios > MUCH).mean()
    return f"{METHODS[name].title}: {ratios.mean():.2f} times the regret without logs, over 1.1 in {harmed:.0%}"
