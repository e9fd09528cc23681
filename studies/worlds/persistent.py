"""Worlds in which a hidden cause lasts over the episode, and the slow, obvious way to compute with them.

An episode draws its hidden cause u and its first state once, and fresh noise e each step. Demonstrators see both.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import causal_shaping as cs

END = -1


@dataclass(frozen=True)
class Step:
    """One row of a trajectory."""

    state: int
    action: int
    reward: float
    after: int  # END if the episode ended


@dataclass(frozen=True, eq=False)
class PersistentWorld:
    """A world of a few states; tables are [step, state, action, u, e] unless said otherwise."""

    horizon: int
    start: np.ndarray  # [u, state], adds up to 1
    noise: np.ndarray  # [e]
    after: np.ndarray
    reward: np.ndarray
    demonstrators: tuple  # each [step, state, u, e, action]
    stopping: np.ndarray  # [step, u], the probability that the log of an episode stops before a later step
    discount: float = 1.0

    @property
    def shape(self):
        """How many states, actions, hidden causes, noises."""
        return self.after.shape[1:]

    @cached_property
    def space(self):
        """The states and actions."""
        states, actions, *_ = self.shape
        return cs.Space(range(states), range(actions))

    def optimum(self, state):
        """The best mean return from a first state, by search over histories, and the weight of the state.

        The agent knows the history; what it believes of u is the mass of u together with the history.
        """
        mass = self.start[:, state]
        return self._best(0, state, mass) / mass.sum()

    def _best(self, step, state, mass):
        if step == self.horizon:
            return 0.0
        _, actions, causes, noises = self.shape
        values = []
        for x in range(actions):
            value, histories = 0.0, {}
            for u in range(causes):
                for e in range(noises):
                    here = mass[u] * self.noise[e]
                    if here > 0:
                        reward, after = self.reward[step, state, x, u, e], int(self.after[step, state, x, u, e])
                        value += here * reward
                        if after != END:
                            histories.setdefault((after, reward), np.zeros(causes))[u] += here
            for (after, _), left in histories.items():
                value += self.discount * self._best(step + 1, after, left)
            values.append(value)
        return max(values)

    @cached_property
    def trajectories(self):
        """For each demonstrator {(rows, how it stopped): mass} of its logs."""
        return [self._logged(table) for table in self.demonstrators]

    def _logged(self, table):
        found = defaultdict(float)

        def go(step, state, u, mass, rows):
            for e, x in np.ndindex(len(self.noise), self.shape[1]):
                here = mass * self.noise[e] * table[step, state, u, e, x]
                if here <= 0:
                    continue
                after = int(self.after[step, state, x, u, e])
                longer = (*rows, Step(state, x, float(self.reward[step, state, x, u, e]), after))
                if after == END or step + 1 == self.horizon:
                    found[longer, "ended" if after == END else "stopped"] += here
                    continue
                stops = self.stopping[step + 1, u]
                if stops > 0:
                    found[longer, "stopped"] += here * stops
                go(step + 1, after, u, here * (1 - stops), longer)

        for u, state in np.argwhere(self.start > 0):
            go(0, int(state), int(u), self.start[u, state], ())
        return found

    def population(self, demonstrator):
        """Return the logs of all trajectories, an episode each, and the mass of each."""
        found = self.trajectories[demonstrator]
        return self.logs(list(found), f"d{demonstrator}"), np.array(list(found.values()))

    def sample(self, demonstrator, episodes, rng):
        """Return logs of a sample of episodes."""
        keys, mass = list(self.trajectories[demonstrator]), np.array(list(self.trajectories[demonstrator].values()))
        return self.logs([keys[i] for i in rng.choice(len(keys), episodes, p=mass / mass.sum())], f"d{demonstrator}")

    def logs(self, episodes, source):
        """Return trajectories as logs."""
        rows, columns = [], ("episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated")
        for i, (steps, stop) in enumerate(episodes):
            for h, row in enumerate(steps):
                last, ended = h == len(steps) - 1, row.after == END
                after = cs.data.space.UNKNOWN if ended else row.after
                rows.append((i, h, row.state, row.action, row.reward, after, ended, last and stop == "stopped"))
        arrays = dict(zip(columns, map(np.array, zip(*rows, strict=True)), strict=True))
        return cs.Logs(self.space, source, **arrays)


def random_world(rng, horizon, *, largest=3):
    """Return a world; demonstrators are anything from blind to perfectly informed."""
    states, actions, causes = rng.integers(1, largest + 1), *rng.integers(2, largest + 1, 2)
    noises = rng.integers(1, 3)
    shape = (horizon, states, actions, causes, noises)
    low, high = [(-1.0, 1.0), (0.0, 1.0), (-1.0, 0.0), (-1.0, -0.2)][rng.integers(4)]
    # Few different rewards, so that histories say something without saying everything.
    reward = np.linspace(low, high, 4)[rng.integers(0, 4, shape)]
    after = rng.integers(0, states, shape)
    after[rng.random(shape) < rng.choice([0.0, 0.2])] = END
    if rng.random() < 0.5:  # a world that stays the same from step to step
        reward, after = (np.broadcast_to(table[:1], shape) for table in (reward, after))
    start = rng.dirichlet(np.ones(causes * states)).reshape(causes, states)
    sources = []
    for _ in range(rng.integers(1, 3)):
        blind = rng.dirichlet(np.ones(actions), (horizon, states))[:, :, None, None, :]
        knowing = rng.dirichlet(np.full(actions, 0.2), (horizon, states, causes, noises))
        insight = rng.choice([0.0, rng.random()])
        sources.append((1 - insight) * blind + insight * knowing)
    stopping = rng.choice([0.0, 0.3]) * rng.random((horizon + 1, causes))
    noise, discount = rng.dirichlet(np.ones(noises)), float(rng.choice([1.0, 0.9]))
    return PersistentWorld(horizon, start, noise, after, reward, tuple(sources), stopping, discount)


def drug_world(horizon=10, cure=0.8, preferred=0.9):
    """Two drugs, of which one cures; which one lasts for the stay. Two doctors, who see nothing, prefer one each.

    A cure pays 1 and ends the stay, and both drugs fail at times, so trying one and then the other is nearly optimal.
    """
    after = np.zeros((horizon, 1, 2, 2, 2), dtype=int)
    reward = np.zeros(after.shape)
    for drug in range(2):
        after[:, 0, drug, drug, 0] = END
        reward[:, 0, drug, drug, 0] = 1.0
    doctors = []
    for drug in range(2):
        share = np.full(2, 1 - preferred)
        share[drug] = preferred
        doctors.append(np.broadcast_to(share, (horizon, 1, 2, 2, 2)))
    start, noise = np.full((2, 1), 0.5), np.array([cure, 1 - cure])
    return PersistentWorld(horizon, start, noise, after, reward, tuple(doctors), np.zeros((horizon + 1, 2)))
