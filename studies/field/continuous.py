"""States that cannot be listed: what `studies.field.fitted` kept of agents with and without logs, as a table.

Its runs take an hour or more, so that their figures are kept, with their dates. A run is a part "case; logs; arm; seed"
with the unshaped returns of evaluations; "case; scale" says what acting at random and acting optimally earn.

- `read_agents`: read the figures.
- `scores`, `score_text`: each arm's scores, and what is said of them.
- `continuous_table`: the table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import FileError
from causal_shaping.io.inputs import InputFile
from causal_shaping.learners.intervals import bootstrap_interval
from studies.pages import NOTHING, Table
from studies.statistics import interquartile_mean

AGENTS = Path(__file__).parent / "fitted" / "figures" / "agents.json"
"""What `studies.field.fitted` keeps."""

SCALE = "scale"
EARLY = 4
"""Evaluations in the first 6,000 of 30,000 steps."""

MEASURES: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "The mean over the evaluations of the first 6,000 steps": lambda runs: runs[:, 1 : 1 + EARLY].mean(axis=1),
    "The mean over all evaluations": lambda runs: runs[:, 1:].mean(axis=1),
    "The mean of the last three evaluations": lambda runs: runs[:, -3:].mean(axis=1),
}
"""Of returns [seeds, evaluations], of which the first is before the first step."""

Parts = Mapping[str, Mapping[str, Any]]
Key = tuple[str, str, str]
"""Case, logs, arm."""


def read_agents(path: str | os.PathLike[str]) -> Parts:
    """Return the figures of a file of `studies.field.fitted`."""
    with InputFile.at(path).open() as file:
        text = file.read()
    try:
        parts: Parts = json.loads(text)["parts"]
        scores(parts, next(iter(MEASURES.values())))
        dates_of(parts)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise FileError(f"{path} holds no figures of studies.field.fitted ({error!r}).") from error
    return parts


def scores(parts: Parts, measure: Callable[[FloatArray], FloatArray]) -> dict[Key, FloatArray]:
    """Return a measure of all runs, 0 for acting at random and 1 for the optimum: float64 [seeds] by arm.

    Cases without a scale are left out.
    """
    runs: dict[Key, list[list[float]]] = {}
    for part, figures in parts.items():
        if "returns" in figures:
            case, logs, arm, _ = part.split("; ")
            if f"{case}; {SCALE}" in parts:
                runs.setdefault((case, logs, arm), []).append(figures["returns"])
    found = {}
    for key, returns in runs.items():
        low, high = (float(parts[f"{key[0]}; {SCALE}"][name]) for name in ("random", "best"))
        found[key] = (measure(np.array(returns, dtype=np.float64)) - low) / (high - low)
    return found


def score_text(found: FloatArray) -> str:
    """Return the interquartile mean of scores [seeds, cases], with its 95% interval if there are several seeds."""
    middle, low, high = bootstrap_interval(interquartile_mean, found)
    return f"{middle:.2f}" if len(found) == 1 else f"{middle:.2f} ({low:.2f} to {high:.2f})"


def seeds_text(found: Mapping[Key, FloatArray]) -> str:
    """Return how many seeds arms have, in words."""
    counts = sorted({len(one) for one in found.values()})
    if not counts:
        return "no runs"
    if counts == [1]:
        return "one seed, without intervals: an anecdote"
    few = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seeds"
    return f"{few}; interquartile mean (95%)"


def dates_of(parts: Parts) -> str:
    """Return when the runs were, in words."""
    dates = sorted({str(figures["date"]) for figures in parts.values() if "date" in figures})
    return " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "a day that was not kept"


def rows_of(found: Mapping[Key, FloatArray]) -> list[tuple[str, str, list[FloatArray | None]]]:
    """Return each arm with its logs, and its scores by case and, if it ran in all, over all: float64 [seeds, cases]."""
    cases = list(dict.fromkeys(case for case, _, _ in found))
    rows = []
    for logs, arm in dict.fromkeys((logs, arm) for _, logs, arm in found):
        own = [found.get((case, logs, arm)) for case in cases]
        complete = [one for one in own if one is not None]
        fewest = min(map(len, complete))
        every = np.stack([one[:fewest] for one in complete], axis=1) if len(complete) == len(cases) else None
        rows.append((arm, logs, [*(None if one is None else one[:, None] for one in own), every]))
    order = {logs: place for place, logs in enumerate(("none", "good", "bad"))}
    return sorted(rows, key=lambda row: order.get(row[1], len(order)))


def continuous_table(parts: Parts) -> Table:
    """Agents in worlds whose states cannot be listed."""
    early, overall = (scores(parts, measure) for measure in list(MEASURES.values())[:2])
    cases = list(dict.fromkeys(case for case, _, _ in early))
    rows = [
        [
            arm,
            logs,
            *(
                NOTHING if one is None or every is None else f"{score_text(one)}\n{score_text(every)}"
                for one, every in zip(first, second, strict=True)
            ),
        ]
        for (arm, logs, first), (_, _, second) in zip(rows_of(early), rows_of(overall), strict=True)
    ]
    return Table(
        "continuous",
        "States that cannot be listed",
        "Stable-Baselines3's DQN with and without logs of one demonstrator: the unshaped return of its greedy policy "
        "over the evaluations of the first 6,000 steps and, below it, of all 30,000, as a score: 0 is acting at "
        f"random, 1 the optimum; {seeds_text(early)}; run on {dates_of(parts)}.",
        ["", "logs", *cases, "all worlds"],
        rows,
        [
            {"case": case, "logs": logs, "arm": arm, "seeds": len(found), "early": float(interquartile_mean(found))}
            | {"all": float(interquartile_mean(overall[case, logs, arm]))}
            for (case, logs, arm), found in early.items()
        ],
    )
