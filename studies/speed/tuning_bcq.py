"""How the defaults of BCQ were chosen: one setting for all grid worlds, changed in one thing at a time.

Per world the share of states with the first optimal action, with any optimal action, and the exact return between that
of random actions (0) and the optimum (1); then the mean return and the mean optimal share. "Settled" is the largest
ratio, over the worlds, of the TD loss at the end to that at three fifths of the training. The first lines are the fixed
point of the pooled logs that the network converges to, without a network. Logs (seed 77) and seeds (10,000 and up) are
for tuning alone; no report or test uses them.
"""

import time

import numpy as np

import causal_shaping as cs
from studies.paper.baselines.bcq import train_bcq

LOG_SEED, SEEDS = 77, range(10_000, 10_001)
BASE = {
    "steps": 5_000,
    "discount": 0.99,
    "threshold": 0.1,
    "width": 64,
    "batch": 1024,
    "learning_rate": 3e-3,
    "target_every": 50,
}
GRID = {
    "threshold": (0.05, 0.3, 0.5),
    "discount": (1.0,),
    "learning_rate": (1e-3, 1e-2),
    "target_every": (10, 200),
    "steps": (2_500, 10_000),
    "width": (128,),
    "batch": (256,),
}
COMBINED = ({"learning_rate": 1e-3, "threshold": 0.05}, {"learning_rate": 1e-3, "threshold": 0.3})
"""The best of the grid, and the same with the threshold of the publication, which is the default."""


def fixed_point(logs, discount, threshold, sweeps=3_000):
    """Return Q, what is allowed, and the policy of threshold-constrained Q iteration on the pooled counts."""
    state, action, reward, after, ended = (
        np.concatenate([getattr(one, name) for one in logs])
        for name in ("state", "action", "reward", "next_state", "terminated")
    )
    states, actions = len(logs[0].space.states), len(logs[0].space.actions)
    visits, total = np.zeros((2, states, actions))
    moves = np.zeros((states, actions, states))
    np.add.at(visits, (state, action), 1)
    np.add.at(total, (state, action), reward)
    np.add.at(moves, (state[~ended], action[~ended], after[~ended]), 1)
    rewards, moves = total / np.maximum(visits, 1), moves / np.maximum(visits, 1)[..., None]
    allowed = visits > threshold * visits.max(axis=1, keepdims=True)
    allowed[visits.sum(axis=1) == 0, 0] = True
    q_values = np.zeros((states, actions))
    for _ in range(sweeps):
        q_values = rewards + discount * moves @ np.where(allowed, q_values, -np.inf).max(axis=1)
    return q_values, allowed, np.where(allowed, q_values, -np.inf).argmax(axis=1)


class Problem:
    """A world with its tuning logs, and what a policy is worth in it."""

    def __init__(self, name):
        self.world = cs.load_world(name)
        self.logs = [self.world.collect(who, 100_000, seed=LOG_SEED) for who in self.world.demonstrators]
        self.best, self.live = self.world.model.optimum(), ~self.world.model.terminal
        actions = len(self.world.actions)
        self.lowest = self.earned(np.full((len(self.live), actions), 1 / actions))
        self.highest = self.world.model.optimum(horizon=self.world.horizon).values[0] @ self.world.model.start

    def earned(self, policy):
        """Return what a policy earns an episode."""
        model = self.world.model
        return model.evaluate(policy, horizon=self.world.horizon).values[0] @ model.start

    def scores(self, policy):
        """Return the share of first maximisers, of optimal actions, and the return between random and optimal."""
        chosen = self.best.q_values[np.arange(len(policy)), policy]
        return (
            np.mean((policy == self.best.greedy())[self.live]),
            np.mean((chosen >= self.best.values - 1e-3)[self.live]),
            (self.earned(policy) - self.lowest) / (self.highest - self.lowest),
        )


def show(what, scores, rest=""):
    """Print a line: scores [worlds, 3]."""
    cells = " | ".join("{:.2f} {:.2f} {:5.2f}".format(*row) for row in scores)
    print(f"{what:36} {cells} || {scores[:, 2].mean():.3f} {scores[:, 1].mean():.3f}{rest}", flush=True)


def main():
    problems = [Problem(name) for name in cs.list_worlds() if name != "walking-robot"]
    print("tuning:", ", ".join(problem.world.name for problem in problems), BASE)
    for threshold in sorted((BASE["threshold"], *GRID["threshold"])):
        policies = [fixed_point(problem.logs, BASE["discount"], threshold)[2] for problem in problems]
        show(
            f"fixed point {threshold}",
            np.array([p.scores(policy) for p, policy in zip(problems, policies, strict=True)]),
        )
    changes = [{}, *({name: value} for name, values in GRID.items() for value in values), *COMBINED]
    for change in changes:
        scores, settled, begun = [], [], time.process_time()
        for problem in problems:
            found = [train_bcq(problem.logs, seed=seed, **BASE | change) for seed in SEEDS]
            scores.append(np.mean([problem.scores(one.policy) for one in found], axis=0))
            loss = np.mean([one.curve[:, 1] for one in found], axis=0)
            settled.append(loss[-5:].mean() / loss[28:33].mean())
        seconds = (time.process_time() - begun) / len(problems) / len(SEEDS)
        what = " ".join(f"{name} {value}" for name, value in change.items()) or "base"
        show(what, np.array(scores), f"  settled {max(settled):.2f}, {seconds:.1f} s a run")


if __name__ == "__main__":
    main()
