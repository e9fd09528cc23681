"""How well could worth be foretold from logs at all? From the results of a field study that has run.

    python -m studies.calibration.worth_limits field     # a minute; writes figures/worth-limits.json

Over random worlds and problems, as rank correlations with the saving that was realised:

- what `worth` predicted;
- another half of the seeds: what a perfect prediction would reach, but for chance;
- the proven share alone: how much of what followed the actions in the logs they prove;
- a forest of numbers that logs tell, which was trained on the savings of other worlds of the same study, so that it
  knows more than anybody who has logs alone; and one that is also told how confounded each world is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold, cross_val_predict

from causal_shaping.io.files import write_text
from studies.field.demonstrators import CONFOUNDING
from studies.field.materials import Materials
from studies.field.plan import FAMILIES, Case

FIGURES = Path(__file__).parent / "figures" / "worth-limits.json"
REPETITIONS, HOSTILE = 5, "hostile"


def told_by_logs(case: Case) -> dict[str, float]:
    """Return numbers that the logs of a case tell."""
    model = Materials(case).belief.model
    guess, shape = model.guess, model.shape
    taken = guess.taken.sum(axis=1)
    chance = guess.taken / np.maximum(guess.visits[np.arange(model.cells) // shape.actions], 1.0)
    return {
        "rows": np.log(case.rows),
        "agreement": np.log(model.agreement),
        "states": shape.states,
        "actions": shape.actions,
        "proven": 1.0 - float((guess.free * taken).sum() / taken.sum()),
        "proven, all cells": 1.0 - float(guess.free.mean()),
        "covered": float((taken > 0).mean()),
        "refuted": float(model.refuted.mean()),
        "likeliest action": float(chance.max(axis=1).mean()),
        "outcomes": np.log(len(model.node)),
    }


def savings(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the cases with what was predicted for them, and the share of regret that was saved, by seed."""
    results, cases = (pd.read_parquet(folder / f"{name}.parquet") for name in ("results", "worth"))
    cases = cases[cases.family.isin(("random", "problems"))].set_index("case")
    ours = results[results.name == "posterior"].pivot(index="case", columns="seed", values="regret")
    without = results[results.name == "no-logs"].pivot(index="place", columns="seed", values="regret")
    return cases, pd.concat({"with": ours.loc[cases.index], "without": without.loc[cases.place].set_axis(cases.index)})


def saved(regret: pd.DataFrame) -> pd.Series:
    """Return the share of regret that was saved in each case, over the seeds that are given."""
    return 1.0 - regret.loc["with"].mean(axis=1) / regret.loc["without"].mean(axis=1)


def rank(a: object, b: object) -> float:
    """Return the rank correlation."""
    return float(spearmanr(a, b)[0])


def limits(cases: pd.DataFrame, regret: pd.DataFrame, told: pd.DataFrame) -> dict[str, float]:
    """Return rank correlations with what was saved."""
    true, rng = saved(regret), np.random.default_rng(0)
    halves, forest, knowing = [], [], []
    told = told.assign(predicted=cases.predicted, low=cases.low, high=cases.high, chance=cases.chance_of_help)
    hidden = told.assign(confounding=cases.confounding.map(tuple(CONFOUNDING).index))
    for seed in range(REPETITIONS):
        seeds = rng.permutation(regret.columns)
        halves.append(rank(saved(regret[seeds[::2]]), saved(regret[seeds[1::2]])))
        for numbers, found in ((told, forest), (hidden, knowing)):
            trees = RandomForestRegressor(100, min_samples_leaf=3, max_features=0.5, random_state=seed)
            folds = KFold(10, shuffle=True, random_state=seed)
            found.append(rank(cross_val_predict(trees, numbers, true, cv=folds), true))
    return {
        "cases": len(cases),
        "predicted": rank(cases.predicted, true),
        "another half of the seeds": float(np.mean(halves)),
        "proven share alone": rank(told.proven, true),
        "forest of what logs tell": float(np.mean(forest)),
        "forest that knows how confounded": float(np.mean(knowing)),
    }


def main(folder: str) -> None:
    """Print and keep the limits, of all cases and without hostile ones."""
    cases, regret = savings(Path(folder))
    made = {case.name: case for family in ("random", "problems") for case in FAMILIES[family].cases}
    told = pd.DataFrame([told_by_logs(made[name]) for name in cases.index], index=cases.index)
    usual = cases.index[cases.confounding != HOSTILE]
    both = [(name, regret.loc[name].loc[usual]) for name in ("with", "without")]
    found = {
        "all": limits(cases, regret, told),
        "without hostile": limits(cases.loc[usual], pd.concat(dict(both)), told.loc[usual]),
        "proven share, mean": {
            kind: float(told.proven[cases.confounding == kind].mean()) for kind in cases.confounding.unique()
        },
    }
    text = json.dumps(found, indent=2)
    print(text)
    write_text(FIGURES, text + "\n", [".json"])


if __name__ == "__main__":
    main(*sys.argv[1:])
