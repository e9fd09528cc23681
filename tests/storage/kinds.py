"""A small file of each kind that the package writes, and what is read from it, as something that can be compared."""

import hashlib
import json
import pickle

import numpy as np
import pyarrow as pa

import causal_shaping as cs


def _world():
    return cs.load_world("lavacross-easy")


def _counts():
    return cs.count([_world().collect(name, 300, seed=1) for name in ("good", "bad")])


def _ceilings():
    return cs.value_ceilings(_counts(), 4, 1.0, support="any")


def _sensitivity():
    return cs.sensitivity(_counts(), 4, 1.0, -2.0, plug_in=True, confounding=[1.0, 2.0], support="any")


def _forest():
    rng = np.random.default_rng(0)
    state = [list(map(float, row)) for row in rng.normal(size=(60, 3))]
    columns = {"source": ["a", "b"] * 30, "episode": np.arange(60) // 2 // 3, "step": np.arange(60) // 2 % 3}
    rows = pa.table(columns | {"state": state, "action": rng.integers(2, size=60), "reward": -rng.random(60)})
    return cs.fit_ceilings(rows, horizon=2, reward_max=0.0, trees=2, members=1)


def _read_forest(path):
    fitted = cs.FittedCeilings.load(path)
    seen = np.random.default_rng(1).normal(size=(5, *fitted.shape))
    told = json.loads(fitted.to_json())
    del told["settings"]  # a later version may have others
    return fitted(seen).tolist(), json.dumps(told)


KINDS = {
    "logs": (lambda: _world().collect("good", 120, seed=1), lambda path: cs.count(path).checksum),
    "counts": (_counts, lambda path: cs.Counts.load(path).checksum),
    "ceilings": (_ceilings, lambda path: cs.Ceilings.load(path).checksum),
    "potential": (lambda: _ceilings().potential(), lambda path: cs.load_potential(path).checksum),
    "posterior": (lambda: cs.posterior(_counts(), 4, 1.0), lambda path: cs.Posterior.load(path).checksum),
    "sensitivity": (_sensitivity, lambda path: cs.Sensitivity.load(path).checksum),
    "training run": (lambda: cs.train(_world(), None, steps=60, seed=0), lambda path: cs.Run.load(path).checksum),
    "fitted forest": (_forest, _read_forest),
}


def place_of(kind, folder):
    """Return where a file of a kind lies in a folder."""
    return folder / ("fit" if kind == "fitted forest" else "a.parquet")


def make(kind, folder):
    """Write a file of a kind into a folder."""
    KINDS[kind][0]().save(place_of(kind, folder))


def read(kind, folder):
    """Return what tells one file of a kind in a folder from another."""
    return hashlib.sha256(pickle.dumps(KINDS[kind][1](place_of(kind, folder)))).hexdigest()
