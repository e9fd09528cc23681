"""rlberry's UCBVI and PSRL in tables that `exploration.py` wrote; runs in environments of their own.

    python -m studies.speed.rivals AGENT TABLES.npz SETTING STEPS SEED...

prints the regret of each seed as JSON. rlberry-scool 0.7.3 has UCBVI, but no PSRL any more; that is in rlberry 0.6.0,
which it was split from. Both agents are as published, but for three things, in their favour:

- Their backward induction is compiled (rlberry-scool took numba out of it; the results are the same).
- They know what a terminal state is, as our learners do: it leads to itself and pays nothing, for
  the rest of the horizon. Left to itself UCBVI takes what follows an end for the best there is.
- Beside the published bonus there is one of ours, `shared`: a visit lowers the bonus of its pair of state and action at
  every step of the episode, and the factor of its part H / n can be tuned, too. As published, counts are shared among
  steps but bonuses are not, so that each step explores on its own.

Rewards are rescaled to 0 .. 1, as both want them; regret is in the units of the tables.
"""

import json
import sys
import warnings

import gymnasium as gym
import numba
import numpy as np
from rlberry.spaces import Discrete

warnings.simplefilter("ignore")

SURE = 1e9
"""As many visits as it takes to be sure of something."""


class Spent(Exception):
    """The budget of steps is used up."""


class Tables(gym.Env):
    """An environment over tables [state, action, noise], which keeps what each step costs."""

    reward_range = (0.0, 1.0)

    def __init__(self, tables, steps, seed):
        self.tables, self.steps, self.generator = tables, steps, np.random.default_rng(seed)
        states, actions, _ = tables["next_state"].shape
        self.observation_space, self.action_space = Discrete(states), Discrete(actions)
        self.low, self.span = tables["reward"].min(), np.ptp(tables["reward"])
        self.noise, self.start = tables["noise"].cumsum(axis=-1), tables["start"].cumsum()
        self.done, self.regret = 0, 0.0

    def scaled(self, reward):
        """Return a reward on the scale of 0 to 1."""
        return (reward - self.low) / self.span

    def reset(self, *, seed=None, options=None):
        """Begin an episode."""
        self.s, self.h = int(np.searchsorted(self.start, self.generator.random(), side="right")), 0
        return self.s, {}

    def step(self, action):
        """Act, and add what it costs to the regret."""
        if self.done == self.steps:
            raise Spent
        u = min(int(np.searchsorted(self.noise[self.s], self.generator.random(), side="right")), len(self.noise[0]) - 1)
        self.regret += self.tables["gaps"][self.h, self.s, action]
        reward = self.scaled(self.tables["reward"][self.s, action, u])
        self.s, self.h, self.done = int(self.tables["next_state"][self.s, action, u]), self.h + 1, self.done + 1
        return self.s, reward, bool(self.tables["terminal"][self.s]), False, {}


def ucbvi(env, horizon, seed, bonus, shared=False, lower_order=1.0):
    """Return rlberry-scool's UCBVI with what it is told of terminal states."""
    from rlberry_scool.agents.ucbvi import ucbvi as module

    if not hasattr(module.backward_induction_reward_sd, "py_func"):
        module.backward_induction_reward_sd = numba.njit(module.backward_induction_reward_sd)

    class Shared(module.UCBVIAgent):
        def _compute_bonus(self, n, hh):
            return min(bonus / np.sqrt(n) + lower_order * self.v_max[hh] / n, self.v_max[hh])

        def _update(self, state, action, next_state, reward, hh):
            super()._update(state, action, next_state, reward, hh)
            for h in range(self.horizon):
                self.B_sa[h, state, action] = self._compute_bonus(self.N_sa[state, action], h)

    kind = Shared if shared else module.UCBVIAgent
    agent = kind(env, horizon=horizon, bonus_scale_factor=bonus, seeder=seed, copy_env=False)
    for s in np.flatnonzero(env.tables["terminal"]):
        agent.N_sa[s], agent.R_hat[s], agent.B_sa[:, s], agent.P_hat[s] = SURE, env.scaled(0.0), 0.0, 0.0
        agent.P_hat[s, :, s] = 1.0
        for h in range(horizon):
            agent.V[h, s] = (horizon - h) * env.scaled(0.0)
    return agent


def psrl(env, horizon, seed, prior, bernoulli):
    """Return rlberry's PSRL with what it is told of terminal states."""
    from rlberry.agents import PSRLAgent

    options = {"scale_prior_transition": prior, "bernoullized_reward": bernoulli}
    agent = PSRLAgent(env, horizon=horizon, seeder=seed, copy_env=False, **options)
    for s in np.flatnonzero(env.tables["terminal"]):
        agent.N_sas[s], agent.N_sas[s, :, s] = 1e-3, SURE
        agent.M_sa[s] = np.array([env.scaled(0.0), 1 - env.scaled(0.0)]) * SURE + 1e-3
    return agent


AGENTS = {"ucbvi": ucbvi, "psrl": psrl}


def main():
    name, path, setting, steps, *seeds = sys.argv[1:]
    tables = dict(np.load(path))
    for seed in map(int, seeds):
        env = Tables(tables, int(steps), seed)
        agent = AGENTS[name](env, int(tables["horizon"]), seed, **json.loads(setting))
        try:
            agent.fit(int(steps) + 1)
        except Spent:
            print(json.dumps({"seed": seed, "regret": env.regret}), flush=True)


if __name__ == "__main__":
    main()
