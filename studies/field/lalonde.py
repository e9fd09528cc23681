"""LaLonde (1986), after Dehejia and Wahba: job training in a trial, and a survey of men who had none.

Horizon 1. The *logs* are the trained men of the trial and the men of the survey, as a tool would find them if nobody
had run a trial. The truth is what the trial itself shows. Each tool says what men would earn, and how many would be
employed, with training and without; the question is whether the trial's truth lies inside. It need not: the men of the
survey are not those of the trial, so that what every bound assumes, one world for all sources, is false here.

- `claims`: what each tool says.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_shaping.beliefs import posterior
from causal_shaping.bounds import value_ceilings, value_floors
from causal_shaping.data.counts import Counts
from causal_shaping.diagnose import contradictions
from causal_shaping.errors import AssumptionWarning, ContradictionError
from causal_shaping.logs import count, open_logs
from studies.field.plan import CONFIDENCE
from studies.field.sepsis import package_folder

if TYPE_CHECKING:
    import pandas as pd

MOST: Mapping[str, float] = {"earnings": 100_000.0, "employed": 1.0}
"""The most that either outcome can be; earnings in dollars of 1978, by assumption."""

COVARIATES = ("age", "educ", "black", "hisp", "marr", "nodegree", "re74", "re75")
NORMAL = 1.96
ACTIONS = ("none", "training")

Limits = tuple[float, float]
Tool = Callable[[str, str], Limits | None]


@cache
def _people() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the men of the trial, and the logs: those who were trained, and those of the survey."""
    folder = package_folder("causaldata")
    import pandas as pd

    trial, survey = (pd.read_stata(folder / name / f"{name}.dta") for name in ("nsw_mixtape", "cps_mixtape"))
    return _rows(trial), _rows(pd.concat([trial[trial.treat == 1], survey]))


def _rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each man as an episode of one step."""
    action = np.where(frame.treat == 1, "training", "none")
    plain = {"state": "anybody", "step": 0, "terminated": True, "episode": np.arange(len(frame))}
    return frame.assign(action=action, earnings=frame.re78, employed=(frame.re78 > 0).astype(float), **plain)


@cache
def _counts(outcome: str, trial: bool) -> Counts:
    men, logs = _people()
    sources = [open_logs(logs, source="logs", reward=outcome)]
    return count([*sources, open_logs(men, source="trial", reward=outcome)] if trial else sources)


def claims() -> list[dict[str, Any]]:
    """Return a row per tool, outcome and action: what it claims, what the trial shows, and whether that lies inside.

    A tool that finds a contradiction claims nothing, and is flagged.
    """
    men, _ = _people()
    clash = {outcome: bool(len(contradictions(_counts(outcome, True)))) for outcome in MOST}
    rows = []
    for name, (tool, warned) in TOOLS.items():
        for outcome in MOST:
            for action in ACTIONS:
                truth = float(men[outcome][men.action == action].mean())
                found = tool(outcome, action)
                low, high = found if found is not None else (None, None)
                inside = None if low is None or high is None else low <= truth <= high
                rows.append(
                    {
                        "claim": f"{name}: {outcome}, {action}",
                        "confidence": CONFIDENCE,
                        "assumed": False,
                        "cells": 1,
                        "violations": None if inside is None else int(not inside),
                        "low": low,
                        "high": high,
                        "truth": truth,
                        "flagged": found is None or (warned and clash[outcome]),
                    }
                )
    return rows


def _mean(outcome: str, action: str) -> Limits:
    """The mean of those who had the action, as if the logs were a trial."""
    _, logs = _people()
    some = logs[outcome][logs.action == action]
    error = NORMAL * float(some.std()) / math.sqrt(len(some))
    return float(some.mean()) - error, float(some.mean()) + error


def _regression(outcome: str, action: str) -> Limits:
    """What a linear regression on eight covariates and training predicts for the men of the trial."""
    men, logs = _people()

    def design(frame: pd.DataFrame, trained: Any) -> Any:
        held = frame[list(COVARIATES)].to_numpy(dtype=float)
        return np.column_stack([np.ones(len(held)), trained, held])

    table, target = design(logs, logs.action == "training"), logs[outcome].to_numpy(dtype=float)
    inverse = np.linalg.inv(table.T @ table)
    weights = inverse @ table.T @ target
    at = design(men, np.full(len(men), action == "training")).mean(axis=0)
    left = table * (target - table @ weights)[:, None]
    error = NORMAL * math.sqrt(float(at @ inverse @ (left.T @ left) @ inverse @ at))
    return float(at @ weights) - error, float(at @ weights) + error


def _bounds(gamma: float, trial: bool = False) -> Tool:
    """Ceilings and floors at 95% confidence, of the logs at a Gamma, with the trial as a source or without."""

    def tool(outcome: str, action: str) -> Limits | None:
        counts = _counts(outcome, trial)
        options: Any = {"confidence": CONFIDENCE, "support": "any"}
        options["confounding"] = {"logs": gamma, "trial": 1.0} if trial else gamma
        with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
            try:
                ceilings = value_ceilings(counts, 1, MOST[outcome], **options)
                floors = value_floors(counts, 1, 0.0, **options)
            except ContradictionError:
                return None
        x = counts.space.actions.index(action)
        return float(floors.q_values[0, 0, x]), float(ceilings.q_values[0, 0, x])

    return tool


def _believed(outcome: str, action: str) -> Limits:
    """The middle 95% of what the posterior believes, from the logs alone."""
    counts = _counts(outcome, False)
    belief = posterior(counts, 1, MOST[outcome])
    x = counts.space.actions.index(action)
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(belief.quantile(q).q_values[0, 0, x]) for q in (tail, 1 - tail))
    return low, high


TOOLS: Mapping[str, tuple[Tool, bool]] = {
    "means of the logs": (_mean, False),
    "regression on covariates": (_regression, False),
    "bounds, Gamma 1": (_bounds(1.0), False),
    "bounds, Gamma 5": (_bounds(5.0), False),
    "bounds, any confounding": (_bounds(math.inf), False),
    "posterior, any confounding (no bound)": (_believed, False),
    "bounds with the trial, logs at Gamma 1": (_bounds(1.0, trial=True), True),
    "bounds with the trial, logs at any": (_bounds(math.inf, trial=True), True),
}
"""The tools, and whether they see that trial and logs contradict each other."""
