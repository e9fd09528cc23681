"""Seeds that take long enough to be killed on the way."""

import causal_shaping as cs

STEPS = 200_000


def train_long(folder):
    """Train twelve seeds, and return what came out."""
    return cs.train_seeds(cs.load_world("lavacross-easy"), steps=STEPS, seeds=range(12), folder=folder)


def kept(folder):
    return list(folder.glob("seed-*.parquet"))
