"""Run by the interpreter of `causalrl`'s own environment: upper envelope of its bounded fitted Q-iteration.

It refuses transitions that may be confounded, as ours are, unless they are declared heuristic. Its cap on values is the
best reward times the steps left, which is wrong where rewards are negative and episodes can end: then its range of
rewards is stretched to 0.
"""

import sys
import time

import numpy as np
from causalrl.agents.bounded_fitted import BoundedFittedQIteration
from causalrl.bounds.functional import FunctionalManskiBounds
from causalrl.state import FeatureTransition
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

FOREST = {"n_estimators": 8, "min_samples_leaf": 20, "random_state": 0}


class Vector:
    """An encoder that takes vectors as they are."""

    def __init__(self, dim):
        self.dim = dim

    def encode(self, observation):
        return np.asarray(observation["state"], dtype=np.float64)


class Propensity:
    """A forest behind the protocol of `causalrl`: the probability of 1."""

    def fit(self, features, labels):
        self.model = ExtraTreesClassifier(**FOREST).fit(features, labels.astype(int))
        return self

    def predict_proba(self, features):
        return self.model.predict_proba(features)[:, 1]


def main(given, found):
    held = np.load(given)
    began = time.process_time()
    actions, horizon = int(held["count"]), int(held["horizon"])
    limits = (min(float(held["low"]), 0.0), max(float(held["high"]), 0.0))
    bounds = FunctionalManskiBounds(
        actions,
        outcome_model=lambda: ExtraTreesRegressor(**FOREST),
        propensity_model=Propensity,
        reward_range=limits,
        n_folds=2,
    )
    agent = BoundedFittedQIteration(
        actions,
        horizon,
        Vector(held["states"].shape[1]),
        bounds_model=bounds,
        regressor=lambda: ExtraTreesRegressor(**FOREST),
        reward_range=limits,
        allow_heuristic=True,
        seed=0,
    )
    states, next_states = (held[name].astype(np.float64) for name in ("states", "next_states"))
    columns = (states, held["actions"], held["rewards"], next_states, held["terminated"])
    agent.fit(
        [
            FeatureTransition(state=s, action=int(x), reward=float(r), next_state=n, done=bool(d))
            for s, x, r, n, d in zip(*columns, strict=True)
        ]
    )
    points = held["points"].astype(np.float64)
    _, high = agent._envelope(points, 1, *agent._bounds_model.bounds(points))
    np.savez(found, values=high.max(axis=1), seconds=time.process_time() - began)


if __name__ == "__main__":
    main(*sys.argv[1:])
