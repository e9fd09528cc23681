"""Rivals with networks in the field study: what `causal-shaping field --networks` finds; each family is a part.

Runs are kept in `validation/work`, so that an interrupted part resumes.
"""

from __future__ import annotations

from causal_shaping.paper.field.plan import METHODS, NETWORK_CASES, Plan
from causal_shaping.paper.field.run import run_field
from causal_shaping.paper.field.tables import network_dates, network_table
from field.parts import WORK, Figures

VERSION = 1


def parts() -> list[str]:
    """Return the families."""
    return list(NETWORK_CASES)


def run_part(part: str) -> Figures:
    """Run all methods in some cases of a family, and return the records of its table."""
    results, missing = run_field(Plan(families=(part,), networks=True), WORK / "networks", workers=1)
    if missing:
        raise RuntimeError(" ".join(missing))
    return {"date": network_dates(results), "methods": list(network_table(results, part).records)}


def tables(done: dict[str, Figures]) -> list[str]:
    """Return a table for each family."""
    lines: list[str] = []
    for family, figures in done.items():
        held = {one["method"]: one for one in figures["methods"]}
        cases = max(one["cases"] for one in held.values())
        lines += [f"**{family}**: {cases} cases, run on {figures['date']}", ""]
        lines += [
            "| | mean (95%) | interquartile mean | worst decile | harmed | CPU s |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for name in [name for name in METHODS if name in held]:
            one = held[name]
            cells = [
                "{mean:.2f} ({mean_low:.2f} to {mean_high:.2f})".format(**one),
                f"{one['iqm']:.2f}",
                f"{one['worst_decile']:.2f}",
                f"{one['harmed']:.0%}",
                f"{one['cpu']:.2f}",
            ]
            ours = " (ours)" if METHODS[name].ours else ""
            lines.append(f"| {METHODS[name].title}{ours} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines
