"""LaLonde (1986), after Dehejia and Wahba: job training in a trial, and a survey of men who had none.

Horizon 1. The *logs* are the trained men of the trial and the men of the survey, as a tool would find them if nobody
had run a trial. The truth is what the trial itself shows. Each tool says what men would earn, and how many would be
employed, with training and without; the question is whether the trial's truth lies inside. It need not: the men of the
survey are not those of the trial, so that what every bound assumes, one world for all sources, is false here.

- `claims`: what each tool says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from causal_shaping.beliefs import posterior
from causal_shaping.bounds import value_ceilings, value_floors
from causal_shaping.data.counts import Counts
from causal_shaping.errors import ContradictionError
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

    A tool that finds a contradiction claims nothing.
    """
    men, _ = _people()
    rows = []
    for name, tool in TOOLS.items():
        for outcome, action in itertools.product(MOST, ACTIONS):
            truth = float(men[outcome][men.action == action].mean())
            low, high = tool(outcome, action) or (None, None)
            inside = None if low is None or high is None else low <= truth <= high
            row = {"claim": f"{name}: {outcome}, {action}", "assumed": False, "low": low, "high": high, "truth": truth}
            rows.append(row | {"confidence": CONFIDENCE, "violations": None if inside is None else int(not inside)})
    return rows


def _mean(outcome: str, action: str) -> Limits:
    """The mean of those who had the action, as if the logs were a trial."""
    _, logs = _people()
    some = logs[outcome][logs.action == action]
    return _normal(float(some.mean()), float(some.std()) / math.sqrt(len(some)))


def _normal(mean: float, error: float) -> Limits:
    return mean - NORMAL * error, mean + NORMAL * error


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
    return _normal(float(at @ weights), math.sqrt(float(at @ inverse @ (left.T @ left) @ inverse @ at)))


def _bounds(gamma: float, trial: bool = False) -> Tool:
    """Ceilings and floors at 95% confidence, of the logs at a Gamma, with the trial as a source or without."""
    confounding = {"logs": gamma, "trial": 1.0} if trial else gamma
    options: Any = {"confidence": CONFIDENCE, "support": "any", "confounding": confounding}

    def tool(outcome: str, action: str) -> Limits | None:
        counts = _counts(outcome, trial)
        x = counts.space.actions.index(action)
        try:
            floors = value_floors(counts, 1, 0.0, **options)
            ceilings = value_ceilings(counts, 1, MOST[outcome], **options)
        except ContradictionError:
            return None
        return float(floors.q_values[0, 0, x]), float(ceilings.q_values[0, 0, x])

    return tool


def _believed(outcome: str, action: str) -> Limits:
    """The middle 95% of what the posterior believes, from the logs alone."""
    counts = _counts(outcome, False)
    belief, x = posterior(counts, 1, MOST[outcome]), counts.space.actions.index(action)
    low, high = (belief.quantile(q).q_values[0, 0, x] for q in ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return float(low), float(high)


TOOLS: Mapping[str, Tool] = {
    "means of the logs": _mean,
    "regression on covariates": _regression,
    "bounds, Gamma 1": _bounds(1.0),
    "bounds, Gamma 5": _bounds(5.0),
    "bounds, any confounding": _bounds(math.inf),
    "posterior, any confounding (no bound)": _believed,
    "bounds with the trial, logs at Gamma 1": _bounds(1.0, trial=True),
    "bounds with the trial, logs at any": _bounds(math.inf, trial=True),
}
