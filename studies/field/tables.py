"""The tables of the field study.

- `all_tables`: a family's methods; the same by how confounded the logs are; where a rival does better; claims, and
  whether they are true.
- `targets`: what was asked of the recommended learner, and what came of it.
- `decisions`: what to use when.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from causal_shaping.data.arrays import FloatArray
from studies.field.demonstrators import CONFOUNDING
from studies.field.methods import BASELINE, METHODS, RECOMMENDED
from studies.field.metrics import (
    MUCH,
    Compared,
    claims_held,
    compared,
    harm,
    mean_ratio,
    middle,
    worst_decile,
    worth_scores,
)
from studies.field.plan import FAMILIES
from studies.field.run import Results, Row
from studies.pages import NOTHING, Table, interval_text

LEARNED = ("random", "problems", "sepsis")
"""The families in which learners run."""


def ran(results: Results) -> list[str]:
    """Return the families that there are runs of, in the order of the plan."""
    held = {row["family"] for row in results.runs}
    return [name for name in LEARNED if name in held]


def all_tables(results: Results) -> Iterator[Table]:
    """Yield the tables that results have rows for."""
    made = [family_table(results, family) for family in ran(results)]
    made += [confounding_table(results), losses_table(results), claims_table(results)]
    yield from (one for one in [*made, lalonde_table(results), clinic_table(results)] if one.rows)


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
        cases, hurt, surely = harm(some)
        reached = ~np.isnan(some.until)
        spent = [row["cpu_seconds"] for row in results.timings if (row["family"], row["name"]) == (family, method)]
        rows.append(
            [
                _title(method),
                interval_text(some.interval(mean_ratio), 2),
                interval_text(some.interval(middle), 2),
                f"{worst_decile(some.ratios):.2f}",
                NOTHING if method == BASELINE else f"{some.improvement():.0%}",
                NOTHING if method == BASELINE else f"{hurt / cases:.0%}, surely {surely / cases:.0%}",
                f"{reached.mean():.0%}, after {np.nanmean(some.until):.0%}" if reached.any() else NOTHING,
                f"{np.mean(spent) / len(some.regret):.2f}",
            ]
        )
    return _table(
        f"family-{family}",
        FAMILIES[family].title,
        "Regret over that of posterior sampling without logs, which is 1: mean and interquartile mean over cases and "
        "seeds with 95% bootstrap intervals over worlds and seeds; the worst decile of cases; the chance of less "
        "regret than without logs; cases whose regret is more than 1.1 times that without logs, on average, and with "
        "its whole interval; runs that get to 90% of the optimum (a tenth of the budget in which they lose at most a "
        "tenth of what acting at random loses), and after which share of the budget on average; CPU "
        "seconds of a run, preparation included.",
        ["", "mean", "interquartile mean", "worst decile", "better", "harmed", "at 90%", "CPU s"],
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
    some = [one.where(lambda case: case["confounding"] in levels).ratio for one in found if one is not None]
    return np.concatenate([np.zeros(0), *some])


def losses_table(results: Results, most: int = 12) -> Table:
    """The cases in which logs cost the recommended learner most, and who does better there."""
    held: dict[tuple[str, str], dict[str, float]] = {}
    for family in ran(results):
        for method in METHODS:
            some = compared(results, family, method)
            if some is not None and METHODS[method].uses_logs:
                for case, ratio in zip(some.cases, some.ratio.tolist(), strict=True):
                    held.setdefault((family, case["case"]), {})[method] = ratio
    known = [one for one in held.items() if RECOMMENDED in one[1]]
    worst = sorted(known, key=lambda one: -one[1][RECOMMENDED])[:most]
    rows = []
    for (family, name), ratios in worst:
        best = min(ratios, key=ratios.__getitem__)
        rows.append([f"{family}\n{name}", f"{ratios[RECOMMENDED]:.2f}", METHODS[best].title, f"{ratios[best]:.2f}"])
    return _table(
        "losses",
        "Where we lose",
        "The cases in which logs cost posterior sampling most: its regret over that without logs, and the method that "
        "does best there.",
        ["case", "ours", "best", "its"],
        rows,
    )


def claims_table(results: Results) -> Table:
    """Whether bounds hold in the families with learners."""
    rows = []
    for one in claims_held(row for row in results.claims if row["family"] in LEARNED):
        level, chance = (NOTHING, NOTHING) if one.confidence is None else (f"{one.confidence:.0%}", f"{one.chance:.2f}")
        rows.append([one.claim, level, str(one.cases), str(one.false), chance, f"{one.distance:.2f}"])
    return _table(
        "claims",
        "Claimed bounds against V*",
        "Each is a claim about all steps and states of a world at once. Cases in which what it assumes is true, and in "
        "how many of them it is false somewhere; the chance of so many or more if the confidence is right; the median "
        "distance to V* at the first step, over the largest V*. Plug-in ceilings are no claims.",
        ["", "confidence", "cases", "false", "chance", "distance"],
        rows,
    )


def _by_claim(results: Results, family: str, outer: int) -> dict[str, dict[str, Row]]:
    """Return the claims of a family by the first part (0) of their names and then the second, or the other way (1)."""
    found: dict[str, dict[str, Row]] = {}
    for row in results.claims:
        if row["family"] == family:
            names = row["claim"].split(": ")
            found.setdefault(names[outer], {})[names[1 - outer]] = row
    return found


def lalonde_table(results: Results) -> Table:
    """What each tool says of LaLonde's men."""
    tools = _by_claim(results, "lalonde", 0)

    def cell(row: Row) -> str:
        if row["low"] is None:
            return "contradiction:\nclaims nothing"
        digits = 0 if row["high"] > 2 else 2
        side = "inside" if row["violations"] == 0 else "OUTSIDE"
        return f"{row['low']:,.{digits}f} to {row['high']:,.{digits}f}\n{side}"

    rows, columns = [], list(next(iter(tools.values()), {}))
    if tools:
        truths = [row["truth"] for row in next(iter(tools.values())).values()]
        rows = [["the trial", *(f"{truth:,.0f}" if truth > 2 else f"{truth:.2f}" for truth in truths)]]
    rows += [[tool, *(cell(held[what]) for what in columns)] for tool, held in tools.items()]
    return _table(
        "lalonde",
        FAMILIES["lalonde"].title,
        "What each tool says of earnings in 1978 and of the share that is employed, from the trained men of the trial "
        "and the men of a survey, at 95% confidence, and whether what the trial shows lies inside. The men of the "
        "survey are others than those of the trial: what each of these tools assumes is false, and a trial shows it.",
        ["", *columns],
        rows,
    )


def clinic_table(results: Results) -> Table:
    """What each tool claims of a clinic with a hidden cause that lasts."""
    places = _by_claim(results, "clinic", 1)

    def cell(row: Row) -> str:
        if row["high"] is None:
            return "contradiction"
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
        "flags the logs at a level of 5%. Ceilings assume that a cause is drawn afresh each day; episode ceilings do "
        "not.",
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
    unhostile = [one.where(lambda case: case["confounding"] != "hostile") for one in some.values()]
    peaceful = [one for one in unhostile if one.cases]
    hurt = [harm(one) for one in peaceful]
    cases, mean, surely = (sum(one[i] for one in hurt) for i in range(3))
    against = ratios_at(results, RECOMMENDED, "hostile")
    worth, held = worth_scores(results), claims_held(row for row in results.claims if row["family"] in LEARNED)
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
            surely <= 0.05 * cases,
        ),
        (
            "hostile logs cost at most a quarter more, on average",
            f"{against.mean():.2f} times over {len(against)} cases" if len(against) else "no cases",
            bool(against.mean() <= 1.25) if len(against) else None,
        ),
        (
            "rank correlation of predicted and realised worth of at least 0.8",
            f"{worth.rank_correlation:.2f} over {len(worth.predicted)} cases",
            bool(worth.rank_correlation >= 0.8),
        ),
        ("its sign right in at least 90%", f"{worth.sign_right:.0%}", bool(worth.sign_right >= 0.9)),
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
                measures = {"mean": mean_ratio, "worst decile": worst_decile}
                better = [name for name, of in measures.items() if of(other.ratios) < of(own.ratios)]
                ahead += [f"{family}: {method} ({', '.join(better)})"] if better else []
    return "; ".join(ahead)


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
        found = {name: ratios_at(results, name, *levels) for name in usable}
        first, *others = sorted((name for name in usable if len(found[name])), key=lambda name: found[name].mean()) or [
            ""
        ]
        if first:
            evidence = [_evidence(first, found[first])]
            evidence += [f"next is {_evidence(name, found[name])}" for name in others[:1]]
            evidence += [_evidence(name, found[name]) for name in others[1:] if name == RECOMMENDED]
            yield situation, METHODS[first].title, f"{'; '.join(evidence)} ({len(found[first])} cases)"


def _evidence(name: str, ratios: FloatArray) -> str:
    harmed = (ratios > MUCH).mean()
    return f"{METHODS[name].title}: {ratios.mean():.2f} times the regret without logs, over 1.1 in {harmed:.0%}"
