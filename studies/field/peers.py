"""Learners of other packages, which are installed for them: `causalrl`'s deconfounded optimistic value iteration.

- `run_dovi`: DOVI (Wang et al. 2021) of `causalrl` 3.0.0, with the logs.

Its other agents that take confounded logs, `UCDTR` and `DeepDeconfoundedQ`, learn the reward of one step alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from causal_shaping.data.arrays import FloatArray
from causal_shaping.data.logs import Logs
from causal_shaping.worlds import World
from causal_shaping.worlds.simulate import pick, tables_of
from studies.field.rivals import COLUMNS, own_streams

CERTAIN = 1e12
"""The visits of what is known."""


def run_dovi(world: World, steps: int, seed: int, logs: list[Logs], *, bonus: float) -> FloatArray:
    """Return the regret of each step of `causalrl`'s DOVI, which plans anew before each episode.

    It bounds the reward of a step by the logs and takes their transitions as they are, which it calls heuristic. Its
    rewards are from 0 to 1, so that a state that ends an episode becomes one that pays what 0 becomes, for ever.

    Args:
        world: the world.
        steps: the budget.
        seed: equal seeds give equal runs.
        logs: the logs, of all sources alike.
        bonus: its scale of optimism, `reward_max`; 1 is in keeping with its rewards.
    """
    stream, own = own_streams(seed)
    next_state, reward, noise, terminal, start = tables_of(world.model)
    gaps, horizon = world.model.gaps(world.horizon), world.horizon
    low, high = world.model.reward_range
    low, high = min(low, 0.0), max(high, 0.0)
    paid = (reward - low) / (high - low)
    agent = _agent(world, logs, low, high - low, bonus, int(own.integers(2**31)))
    regret, h, s, plan = np.zeros(steps), horizon, 0, None
    for done in range(steps):
        if h == horizon:
            h, s, plan = 0, pick(start, stream.random()), agent._plan()
        agent._q = plan  # by itself it would plan at each step
        x = agent.act({"state": s, "t": h})
        regret[done] = gaps[h, s, x]
        u = pick(noise[s], stream.random())
        after = int(next_state[s, x, u])
        agent.update({"state": s}, x, float(paid[s, x, u]))
        agent.observe_transition(s, x, after, False)
        h, s = (horizon, 0) if terminal[after] else (h + 1, after)
    return regret


def _agent(world: World, logs: list[Logs], low: float, span: float, bonus: float, seed: int) -> Any:
    """Return the agent with the logs; it knows which actions exist, and what a state pays that ends an episode."""
    held, dovi = (import_module(f"causalrl.{name}") for name in ("data.dataset", "agents.dovi"))
    exists, terminal = world.space.is_admissible, world.model.terminal
    states, actions = exists.shape
    state, action, reward, after, final = (np.concatenate([getattr(one, name) for one in logs]) for name in COLUMNS)
    known = (after >= 0) | final
    after = np.where(final, np.flatnonzero(terminal)[0] if terminal.any() else 0, after)
    columns = (state, action, (reward - low) / span, after)
    rows = [held.Transition(*row, False) for row in zip(*(one[known].tolist() for one in columns), strict=True)]
    agent = dovi.DOVI(states, actions, world.horizon, seed, reward_max=bonus, allow_heuristic=True)
    agent.ingest_offline(held.ConfoundedTrajectoryDataset(rows, states, actions))
    agent._ceiling[~exists] = -world.horizon
    agent._ceiling[terminal] = agent._sums[terminal] = -low / span
    agent._sums[terminal] *= CERTAIN
    agent._counts[terminal] = CERTAIN
    for s in np.flatnonzero(terminal):
        agent._trans[s], agent._trans_n[s] = 0.0, 1.0
        agent._trans[s, :, s] = 1.0
    return agent
