"""A point robot in a square room, in gusts that only its operators feel; no return exceeds 9.9.

Every step costs 0.1 to 0.3. Flying into a wall costs 5 and reaching the goal pays 10; both end the
episode.
"""

import numpy as np
import pyarrow as pa

STATE = ["x", "y", "vx", "vy"]
DIRECTIONS = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)], dtype=float)
GOAL, RADIUS = np.array([0.8, 0.8]), 0.1
DRAG, THRUST, GUST = 0.9, 0.01, 0.01
STEPS = 100
LARGEST_RETURN = 9.9
"""The goal's 10, less the least cost of the step that reaches it."""

RANDOM_SHARE = {"skilled": 0.1, "clumsy": 0.5, "random": 1.0}
"""How often each operator thrusts at random instead of towards the goal, against the gust."""


def velocity_after(velocity, thrust, gust):
    return DRAG * velocity + THRUST * DIRECTIONS[thrust] + GUST * DIRECTIONS[gust]


def thrust_of(operator, state, gust, rng):
    """The operator sees the gust and brings the velocity as close as possible to the wanted one."""
    if rng.random() < RANDOM_SHARE[operator]:
        return int(rng.integers(len(DIRECTIONS)))
    wanted = np.clip(0.15 * (GOAL - state[:2]), -0.05, 0.05)
    reached = velocity_after(state[2:], np.arange(len(DIRECTIONS)), gust)
    return int(np.argmin(np.square(reached - wanted).sum(axis=1)))


def step(state, thrust, gust):
    """The next state, the reward, and whether the episode ends."""
    velocity = velocity_after(state[2:], thrust, gust)
    place = state[:2] + velocity
    cost = 0.1 + 0.1 * (thrust > 0) + 0.1 * (gust > 0)
    crashed = bool((place < 0).any() or (place > 1).any())
    arrived = not crashed and bool(np.linalg.norm(place - GOAL) <= RADIUS)
    reward = 10.0 * arrived - 5.0 * crashed - cost
    return np.concatenate([place, velocity]), reward, crashed or arrived


def logs_of(operator, rows, seed=0):
    """So many steps of one operator, as a table with a row for each."""
    rng = np.random.default_rng([seed, len(operator)])
    rows_so_far = []
    episode = -1
    while len(rows_so_far) < rows:
        episode += 1
        state = np.concatenate([rng.uniform(0.1, 0.6, 2), np.zeros(2)])
        for k in range(STEPS):
            gust = int(rng.choice(len(DIRECTIONS), p=[0.4, 0.15, 0.15, 0.15, 0.15]))
            thrust = thrust_of(operator, state, gust, rng)
            after, reward, ended = step(state, thrust, gust)
            last = k == STEPS - 1 or len(rows_so_far) == rows - 1
            flags = (ended, last and not ended)
            rows_so_far.append((operator, episode, k, *state, thrust, reward, *after, *flags))
            state = after
            if ended or last:
                break
    names = ["source", "episode", "step", *STATE, "action", "reward"]
    names += [*(f"next_{name}" for name in STATE), "terminated", "truncated"]
    columns = map(pa.array, zip(*rows_so_far, strict=True))
    return pa.table(dict(zip(names, columns, strict=True)))
