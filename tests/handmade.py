"""Counts and logs from a few rows: what is the same in all of them is given once."""

import numpy as np

import causal_shaping as cs


def counts_of_entries(space, n, reward=0.0, *, sources=("d0",), population=False, step=None, **columns):
    """Counts of entries with so many visits; any other column is one value for all entries, or one for each."""
    columns = {"source": 0, "state": 0, "action": 0, "next_state": 1, "terminated": True} | columns
    columns |= {"n": n, "reward_min": reward, "reward_max": reward, "reward_sum": np.multiply(n, reward)}
    columns = {name: np.broadcast_to(column, np.shape(n)) for name, column in columns.items()}
    return cs.Counts.combined(space, list(sources), columns | {"step": step}, population=population)


def one_step_logs(space, reward, source="d0", *, state=0, action=0, after=1, ended=True):
    """Logs of episodes of one step, one for each reward; other columns are one value for all, or one for each."""
    n = len(reward)
    state, action, after, ended = (np.broadcast_to(column, n) for column in (state, action, after, ended))
    return cs.Logs(space, source, range(n), np.zeros(n, int), state, action, reward, after, ended, ~ended)
