"""The tables of the field study's page.

- `family_table`: a family's methods; `confounding_table`: the same by how confounded the logs are.
- `claims_table`, `lalonde_table`, `clinic_table`: what was claimed, and whether it is true.
- `losses_table`: where a rival does better.
- `targets`: what was asked of the recommended learner, and what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.field.demonstrators import CONFOUNDING
from studies.field.metrics import (
    Compared,
    claims_held,
    compared,
    harm,
    mean_ratio,
    middle,
    worst_decile,
    worth_scores,
)
from studies.field.plan import BASELINE, FAMILIES, METHODS, RECOMMENDED
from studies.field.run import Results, Row
from studies.pages import NOTHING, Table, interval_text

LEARNED = ("random", "problems", "sepsis")
"""The families in which learners run."""


def ran(results: Results) -> list[str]:
    """Return the families that there are runs of, in the order of the plan."""
    held = {row["family"] for row in results.runs}
    return [name for name in LEARNED if name in held]


def family_table(results: Results, family: str) -> Table:
    """All methods in a family."""
    rows, records = [], []
    for method in METHODS.values():
        some = compared(results, family, method.name)
        if some is None:
            continue
        hurt = harm(some)
        found: dict[str, Any] = {
            "method": method.name,
            "cases": len(some.cases),
            "mean": some.interval(mean_ratio),
            "iqm": some.interval(middle),
            "improvement": some.improvement(),
            "worst_decile": float(worst_decile(some.ratios)),
            "harmed": hurt.on_average / hurt.cases,
            "surely_harmed": hurt.surely / hurt.cases,
            "reached": float((~np.isnan(some.until)).mean()),
            "until": float(np.nanmean(some.until)) if (~np.isnan(some.until)).any() else None,
            "cpu": _seconds(results, family, method.name),
        }
        reached = NOTHING if found["until"] is None else f"{found['reached']:.0%}, after {found['until']:.0%}"
        rows.append(
            [
                f"{method.title}{' (ours)' if method.ours else ''}",
                interval_text(found["mean"], 2),
                interval_text(found["iqm"], 2),
                f"{found['worst_decile']:.2f}",
                NOTHING if method.name == BASELINE else f"{found['improvement']:.0%}",
                NOTHING if method.name == BASELINE else f"{found['harmed']:.0%}, surely {found['surely_harmed']:.0%}",
                reached,
                NOTHING if found["cpu"] is None else f"{found['cpu']:.2f}",
            ]
        )
        flat = {name: value for name, value in found.items() if not isinstance(value, tuple)}
        for name in ("mean", "iqm"):
            flat |= dict(zip((name, f"{name}_low", f"{name}_high"), found[name], strict=True))
        records.append(flat)
    return Table(
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
        records,
    )


def _seconds(results: Results, family: str, method: str) -> float | None:
    spent = [row["cpu_seconds"] for row in results.timings if (row["family"], row["name"]) == (family, method)]
    seeds = len({row["seed"] for row in results.runs if (row["family"], row["name"]) == (family, method)})
    return float(np.mean(spent)) / seeds if spent and seeds else None


def confounding_table(results: Results) -> Table:
    """All methods that use logs, by how confounded these are, over all families with learners."""
    rows, records = [], []
    for method in METHODS.values():
        if not method.uses_logs:
            continue
        cells = []
        for level in CONFOUNDING:
            some = by_confounding(results, method.name, level)
            if not some:
                cells.append(NOTHING)
                continue
            ratios = np.concatenate([one.ratio for one in some])
            cells.append(f"{ratios.mean():.2f}\n{(ratios > 1.1).mean():.0%} harmed")
            records.append(
                {
                    "method": method.name,
                    "confounding": level,
                    "cases": len(ratios),
                    "mean": float(ratios.mean()),
                    "harmed": float((ratios > 1.1).mean()),
                }
            )
        rows.append([f"{method.title}{' (ours)' if method.ours else ''}", *cells])
    return Table(
        "confounding",
        "By how confounded the logs are",
        "Regret over that of posterior sampling without logs, a mean over all cases of all families with learners, and "
        "the share of cases in which it is more than 1.1 times that.",
        ["", *CONFOUNDING],
        rows,
        records,
    )


def by_confounding(results: Results, method: str, level: str) -> list[Compared]:
    """Return a method's cases of a confounding, by family."""
    found = [compared(results, family, method) for family in ran(results)]
    some = [one.where(lambda case: case["confounding"] == level) for one in found if one is not None]
    return [one for one in some if one.cases]


def losses_table(results: Results, most: int = 12) -> Table:
    """The cases in which logs cost the recommended learner most, and who does better there."""
    held: dict[tuple[str, str], dict[str, float]] = {}
    for family in ran(results):
        for method in METHODS:
            some = compared(results, family, method)
            if some is not None and METHODS[method].uses_logs:
                for case, ratio in zip(some.cases, some.ratio, strict=True):
                    held.setdefault((family, case["case"]), {})[method] = float(ratio)
    worst = sorted(
        ((key, ratios) for key, ratios in held.items() if RECOMMENDED in ratios),
        key=lambda one: -one[1][RECOMMENDED],
    )[:most]
    rows, records = [], []
    for (family, name), ratios in worst:
        best = min(ratios, key=ratios.__getitem__)
        rows.append([f"{family}\n{name}", f"{ratios[RECOMMENDED]:.2f}", METHODS[best].title, f"{ratios[best]:.2f}"])
        records.append({"family": family, "case": name, "ours": ratios[RECOMMENDED], "best": best, "its": ratios[best]})
    return Table(
        "losses",
        "Where we lose",
        "The cases in which logs cost posterior sampling most: its regret over that without logs, and the method that "
        "does best there.",
        ["case", "ours", "best", "its"],
        rows,
        records,
    )


def claims_table(results: Results) -> Table:
    """Whether bounds hold in the families with learners."""
    held = claims_held(row for row in results.claims if row["family"] in LEARNED)
    return Table(
        "claims",
        "Claimed bounds against V*",
        "Each is a claim about all steps and states of a world at once. Cases in which what it assumes is true, and in "
        "how many of them it is false somewhere; the chance of so many or more if the confidence is right; the median "
        "distance to V* at the first step, over the largest V*. Plug-in ceilings are no claims.",
        ["", "confidence", "cases", "false", "chance", "distance"],
        [
            [
                one.claim,
                NOTHING if one.confidence is None else f"{one.confidence:.0%}",
                str(one.cases),
                str(one.false),
                NOTHING if one.confidence is None else f"{one.chance:.2f}",
                f"{one.distance:.2f}",
            ]
            for one in held
        ],
        [one._asdict() for one in held],
    )


def lalonde_table(results: Results) -> Table:
    """What each tool says of LaLonde's men."""
    some = [row for row in results.claims if row["family"] == "lalonde"]
    tools: dict[str, dict[str, Row]] = {}
    for row in some:
        tool, what = row["claim"].split(": ")
        tools.setdefault(tool, {})[what] = row
    columns = list(dict.fromkeys(row["claim"].split(": ")[1] for row in some))

    def cell(row: Row) -> str:
        if row["low"] is None:
            return "contradiction:\nclaims nothing"
        digits = 0 if row["high"] > 2 else 2
        side = "inside" if row["violations"] == 0 else "OUTSIDE"
        return f"{row['low']:,.{digits}f} to {row['high']:,.{digits}f}\n{side}"

    truths = {what: next(iter(tools.values()))[what]["truth"] for what in columns} if tools else {}
    first = ["the trial", *(f"{truth:,.0f}" if truth > 2 else f"{truth:.2f}" for truth in truths.values())]
    return Table(
        "lalonde",
        FAMILIES["lalonde"].title,
        "What each tool says of earnings in 1978 and of the share that is employed, from the trained men of the trial "
        "and the men of a survey, at 95% confidence, and whether what the trial shows lies inside. The men of the "
        "survey are others than those of the trial: what each of these tools assumes is false, and a trial shows it.",
        ["", *columns],
        [first, *([tool, *(cell(held[what]) for what in columns)] for tool, held in tools.items())] if tools else [],
        [{key: row[key] for key in ("claim", "low", "high", "truth", "violations", "flagged")} for row in some],
    )


def clinic_table(results: Results) -> Table:
    """What each tool claims of a clinic with a hidden cause that lasts."""
    some = [row for row in results.claims if row["family"] == "clinic"]
    places = list(dict.fromkeys(row["claim"].split(": ")[1] for row in some))
    tools = list(dict.fromkeys(row["claim"].split(": ")[0] for row in some))
    held = {tuple(row["claim"].split(": ")): row for row in some}
    rows = []
    for place in places:
        first = held[tools[0], place]
        cells = []
        for tool in tools:
            row = held[tool, place]
            if row["high"] is None:
                cells.append("contradiction")
            else:
                low = row["high"] < row["truth"] - 1e-9
                cells.append(f"{row['high']:.2f}{' (too low)' if low else ''}")
        rows.append([place, f"{first['truth']:.2f}", *cells, "flagged" if first["flagged"] else NOTHING])
    return Table(
        "clinic",
        FAMILIES["clinic"].title,
        "The most that a stay of three days can earn, what each tool says of it, and whether the test of persistence "
        "flags the logs at a level of 5%. Ceilings assume that a cause is drawn afresh each day; episode ceilings do "
        "not.",
        ["clinic", "truth", *tools, "test"],
        rows,
        [{key: row[key] for key in ("claim", "high", "truth", "violations", "assumed", "flagged")} for row in some],
    )


def targets(results: Results) -> list[tuple[str, str, bool | None]]:
    """Return what was asked of the recommended learner: the target, what came of it, and whether it is met."""
    found = {name: compared(results, name, RECOMMENDED) for name in ran(results)}
    some = {name: one for name, one in found.items() if one is not None}
    if not some:
        return []
    saved = {name: 1 - float(one.ratio.mean()) for name, one in some.items()}
    unhostile = {name: one.where(lambda case: case["confounding"] != "hostile") for name, one in some.items()}
    average = float(np.mean(list(saved.values())))
    peaceful = [one for one in unhostile.values() if one.cases]
    hostile = [one.where(lambda case: case["confounding"] == "hostile") for one in some.values()]
    hurt = [harm(one) for one in peaceful]
    cases, mean, surely = (sum(one[i] for one in hurt) for i in range(3))
    against = np.concatenate([one.ratio for one in hostile]) if any(one.cases for one in hostile) else np.array([])
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
        (
            "no claimed bound false beyond its confidence",
            "none" if not broken else "; ".join(broken),
            not broken if held else None,
        ),
        ("beats every rival's mean and worst decile in each family", rivals or "yes", not rivals),
    ]


def _rivals(results: Results, ours: dict[str, Compared]) -> str:
    """Return the rivals that are ahead of the recommended learner, by family."""
    ahead = []
    for family, own in ours.items():
        for method in METHODS.values():
            other = None if method.ours else compared(results, family, method.name)
            if other is None:
                continue
            measures: Sequence[str] = [
                name
                for name, statistic in (("mean", mean_ratio), ("worst decile", worst_decile))
                if float(statistic(other.ratios)) < float(statistic(own.ratios))
            ]
            if measures:
                ahead.append(f"{family}: {method.name} ({', '.join(measures)})")
    return "; ".join(ahead)
