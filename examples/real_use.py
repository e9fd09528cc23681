"""From somebody else's logs to a shaped agent, in a standard environment: CliffWalking with gusts.

A pilot flew along the edge of a cliff and felt every gust before it came. A novice felt nothing. Both were logged; the
gusts were not. What are these logs worth to an agent that will fly there without feeling the gusts?

    python examples/real_use.py [--logged 200000] [--seeds 4] [--steps 6000] [--output real_use.png]

Needs Stable-Baselines3: pip install 'stable-baselines3>=2.7'. See docs/tutorials/real-use.md for the story.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.env_util import make_vec_env
from windy_cliff import ACTIONS, COLUMNS, HORIZON, REWARD_MAX, ROWS, fly, make_world, model_of, novice, pilot

import causal_shaping as cs
from causal_shaping.learners.intervals import mean_interval

STATES = range(ROWS * COLUMNS)
START, GOAL = (ROWS - 1) * COLUMNS, ROWS * COLUMNS - 1
CLIFF = range(START + 1, GOAL)  # never stood on: a fall leads back to the start
FIRST_SEED = 100  # smaller ones were used for tuning

Trained = tuple[int, int, np.ndarray]  # falls, arrivals, and the final policy


def naive_q(*sources: cs.Logs) -> np.ndarray:
    """Return what each action would be worth by the logs if nothing were hidden: Q iteration on their rows."""
    state, action, reward, after, ended = (
        np.concatenate([getattr(logs, name) for logs in sources])
        for name in ("state", "action", "reward", "next_state", "terminated")
    )
    cell, cells = state * len(ACTIONS) + action, len(STATES) * len(ACTIONS)
    times, values = np.bincount(cell, minlength=cells), np.zeros(len(STATES))
    for _ in range(HORIZON):
        total = np.bincount(cell, reward + np.where(ended, 0.0, values[after]), minlength=cells)
        q_values = np.where(times > 0, total / np.maximum(times, 1), -np.inf).reshape(len(STATES), -1)
        values = np.where(np.isinf(q_values).all(axis=1), 0.0, q_values.max(axis=1))
    return q_values


def train_table(phi: cs.Ceilings | cs.Potential, rule: cs.Rule, steps: int, seed: int) -> Trained:
    """Train a table by a rule of the package; return falls, arrivals and the final policy."""
    env = make_world()
    run = cs.train(env, phi, learner=rule, steps=steps, seed=seed)
    return env.falls, env.arrivals, run.recommended


def train_network(phi: cs.Potential, steps: int, seed: int) -> Trained:
    """Train A2C from Stable-Baselines3 on the shaped reward; return falls, arrivals and the final policy."""

    def shaped() -> gym.Env:
        return gym.wrappers.TransformReward(cs.ShapeReward(make_world(), phi), lambda reward: reward / 10)

    envs = make_vec_env(shaped, 8, seed=seed)
    network = {"net_arch": []}  # without hidden layers: effectively a table
    agent = A2C("MlpPolicy", envs, 0.03, gamma=1.0, ent_coef=0.01, policy_kwargs=network, seed=seed, device="cpu")
    agent.learn(steps)
    policy, _ = agent.predict(np.array(STATES), deterministic=True)
    return sum(envs.get_attr("falls")), sum(envs.get_attr("arrivals")), policy


def draw(maps: dict[str, np.ndarray], rows: dict[str, np.ndarray]) -> None:
    """Draw the values as maps, and the results of training with their intervals."""
    figure = plt.figure(figsize=(13, 7), layout="constrained")
    left, right = figure.subfigures(1, 2)
    for axis, (title, values) in zip(left.subplots(len(maps)), maps.items(), strict=True):
        shown = np.array(values, dtype=float)
        shown[list(CLIFF)] = np.nan
        image = axis.imshow(shown.reshape(ROWS, COLUMNS), vmin=-20, vmax=0)
        axis.set(title=title, xticks=[], yticks=[])
    left.colorbar(image, ax=left.axes, label="value of the first step")
    axes = right.subplots(1, 2, sharey=True)
    for axis, title, k in ((axes[0], "falls in training", 0), (axes[1], "final policy", 2)):
        for y, runs in enumerate(rows.values()):
            mean, low, high = mean_interval(runs[:, k])
            axis.errorbar(mean, y, xerr=[[mean - low], [high - mean]], fmt="o", color="black", capsize=3)
        axis.set(title=title, yticks=range(len(rows)), yticklabels=list(rows))
    axis.invert_yaxis()


def earned_by(logs):
    """Return what somebody earned from each state to the end of the episode, on average, as a potential."""
    frame = logs.to_pandas()
    frame["earned"] = frame[::-1].groupby("episode").reward.cumsum()
    means = frame.earned.groupby(logs.state).mean()
    return cs.Potential(means.reindex(range(len(logs.space.states)), fill_value=0.0), logs.space, unseen=0.0)


def main() -> None:
    """Log, inspect, bound, compare with the truth, train, and report what the logs were worth."""
    parser = argparse.ArgumentParser(description="From somebody else's logs to a shaped agent.")
    parser.add_argument("--logged", type=int, default=200_000, help="steps of each source")
    parser.add_argument("--seeds", type=int, default=4, help="runs of each learner")
    parser.add_argument("--steps", type=int, default=6_000, help="steps of each run")
    parser.add_argument("--output", default="real_use.png", help="where to save the figure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    print("1. The logs")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "pilot.parquet"), Path(folder, "novice.parquet")]
        for seed, (path, demonstrator) in enumerate(zip(files, (pilot, novice), strict=True)):
            pq.write_table(fly(demonstrator, arguments.logged, seed), path)
        sources = [cs.read_logs(path, states=STATES, actions=ACTIONS) for path in files]
        counts = cs.count(files, states=STATES, actions=ACTIONS)
    for logs in sources:
        episodes = len(np.unique(logs.episode))
        earned = logs.reward.sum() / episodes
        print(f"{logs.source}: {len(logs.reward):,} steps, {episodes:,} episodes, which earned {earned:.1f} on average")

    print("\n2. Inspection")
    found = cs.contradictions(counts)
    print(f"{len(found)} contradictions, the strongest:", *found[:2], sep="\n")

    print("\n3. Ceilings")
    plug_in = cs.value_ceilings(counts, HORIZON, REWARD_MAX)
    ceilings = cs.value_ceilings(counts, HORIZON, REWARD_MAX, confidence=0.95)
    trial = cs.value_ceilings(counts, HORIZON, REWARD_MAX, confidence=0.95, confounding={"novice": 1.0})
    print(ceilings)

    print("\n4. What the logs say, and what is true")
    model = model_of(make_world())  # you will not have this
    optimum = model.optimum(horizon=HORIZON)
    best, q_pilot, q_all = optimum.values[0], naive_q(sources[0]), naive_q(*sources)

    def worth(policy: np.ndarray) -> float:
        return float(model.evaluate(policy, horizon=HORIZON).values[0, START])

    print(f"{'':38}{'at the start':>13}{'if followed':>13}{'mean distance to V*':>21}{'below V*':>10}")
    for name, values, policy in (
        ("V*, the best without feeling gusts", best, optimum.greedy()),
        ("naive Q of the pilot's logs", q_pilot.max(axis=1), q_pilot.argmax(axis=1)),
        ("naive Q of all logs", q_all.max(axis=1), q_all.argmax(axis=1)),
        ("ceiling, plug-in", plug_in.values[0], None),
        ("ceiling, 0.95", ceilings.values[0], None),
        ("ceiling, 0.95, novice unconfounded", trial.values[0], None),
    ):
        known = [s for s in STATES if s not in CLIFF and s != GOAL and np.isfinite(values[s])]
        distance, followed = (values - best)[known], "-" if policy is None else f"{worth(policy):.1f}"
        print(f"{name:38}{values[START]:13.1f}{followed:>13}{abs(distance).mean():21.2f}{(distance < -1e-9).sum():10}")

    print(f"\n5. Learning: {arguments.steps:,} steps, {arguments.seeds} seeds, means and 95% intervals")
    zero, earned = cs.Potential.zero(counts), earned_by(sources[0])
    rule = cs.Rule(bonus=0.0, clip="zero")  # q-ucb-shaping without the two parts that do harm
    learners: dict[str, Callable[..., Trained]] = {
        "table, zero": partial(train_table, zero, rule),
        "table, what the pilot earned": partial(train_table, earned, rule),
        "table, plug-in ceilings": partial(train_table, plug_in, rule),
        "table, 0.95 ceilings": partial(train_table, ceilings, rule),
        "A2C, zero": partial(train_network, zero),
        "A2C, 0.95 ceilings": partial(train_network, ceilings.potential(step_indexed=False)),
    }
    print(f"{'':32}{'falls in training':>23}{'arrivals':>25}{'final policy':>25}")
    rows = {}
    for name, learn in learners.items():
        runs = [learn(steps=arguments.steps, seed=FIRST_SEED + i) for i in range(arguments.seeds)]
        rows[name] = np.array([(falls, arrivals, worth(policy)) for falls, arrivals, policy in runs])
        cells = ["{:.1f} ({:.1f} to {:.1f})".format(*mean_interval(rows[name][:, k])) for k in range(3)]
        print(f"{name:32}{cells[0]:>23}{cells[1]:>25}{cells[2]:>25}")
    draw({"V*": best, "naive Q of the pilot's logs": q_pilot.max(axis=1), "ceiling, 0.95": ceilings.values[0]}, rows)
    plt.savefig(arguments.output, dpi=110)
    print(f"\nThe figure is in {arguments.output}.")


if __name__ == "__main__":
    main()
