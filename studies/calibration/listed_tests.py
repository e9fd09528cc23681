"""How often something false is said of logs whose states are listed: small logs, many times.

- `run_persistence`: the persistence test, in logs in which nothing lasts.
- `run_sources`: contradictions, excess mass and limits of unseen mass, of sources that watch one world.
"""

import numpy as np
from scipy.special import chdtrc

import causal_shaping as cs
from causal_shaping.bounds.agreement import excess_masses
from causal_shaping.diagnose._persistence import Rows, codes, step_tests

LEVEL = 0.05
REPETITIONS, PERMUTATIONS = 1_000, 99
SOURCE_REPETITIONS = 2_000
STATES, ACTIONS, NOISES, STEPS = 4, 3, 3, 6

NOTHING_LASTS = ("deterministic", "blind", "confounded", "time-varying")


def rare(found, errors):
    """Whether alarms are as rare as the level says, within so many standard errors."""
    n = found["logs"]
    return bool(found["alarms"] <= LEVEL * n + errors * (LEVEL * (1 - LEVEL) * n) ** 0.5)


# Persistence ---------------------------------------------------------------------------------------------------------


def random_world(rng, kind, episodes=100):
    """Return logs of two demonstrators of a random world, whose hidden noise is drawn afresh each step.

    Kinds: "deterministic" demonstrators take one action in a state, "blind" ones do not see the noise, "confounded"
    ones do, and in "time-varying" worlds policies, noise, dynamics and rewards are others at each step. In all, some
    outcomes end the episode, and half of the worlds have continuous rewards.
    """
    shape, steps = (STATES, ACTIONS, NOISES), STEPS if kind == "time-varying" else 1
    after, ends = rng.integers(STATES, size=(steps, *shape)), rng.random((steps, *shape)) < 0.05
    earned, continuous = rng.integers(3, size=(steps, *shape)) / 2, bool(rng.integers(2))
    noise = rng.dirichlet(np.ones(NOISES), size=(steps, STATES)).cumsum(-1)
    policy = rng.dirichlet(np.ones(ACTIONS), size=(2, steps, STATES, NOISES))
    if kind == "blind":
        policy = np.repeat(policy[..., :1, :], NOISES, axis=-2)
    if kind == "deterministic":
        policy = np.repeat(np.eye(ACTIONS)[rng.integers(ACTIONS, size=(2, steps, STATES, 1))], NOISES, axis=-2)
    policy = policy.cumsum(-1)
    source = np.repeat([0, 1], episodes)
    episode, state, rows = np.arange(len(source)), rng.integers(STATES, size=len(source)), []
    for step in range(STEPS):
        h, size = step % steps, len(state)
        u = (rng.random(size)[:, None] > noise[h, state]).sum(-1).clip(max=NOISES - 1)
        x = (rng.random(size)[:, None] > policy[source, h, state, u]).sum(-1).clip(max=ACTIONS - 1)
        reward = earned[h, state, x, u] + continuous * rng.standard_normal(size)
        following, ended = after[h, state, x, u], ends[h, state, x, u]
        rows.append((source, episode, np.full(size, step), state, x, following, ended, reward))
        source, episode, state = source[~ended], episode[~ended], following[~ended]
    return columns_of(rows)


def columns_of(rows):
    """Return the columns of a log, step after step, for `Rows` or a data frame."""
    names = ("source", "episode", "step", "state", "action", "next_state", "terminated", "reward")
    columns = {name: np.concatenate(parts) for name, parts in zip(names, zip(*rows, strict=True), strict=True)}
    return columns | {"reward": columns["reward"].astype(float)}


def p_value(columns, permutations, seed):
    """Return the p-value of the persistence test, without files and engines in between."""
    held = dict(columns)
    held["after"] = codes(held.pop("next_state"), held.pop("terminated"))
    found = [test.p_value for test in step_tests(Rows(**held), permutations, seed) if test is not None]
    return float(chdtrc(2 * len(found), -2 * np.log(found).sum())) if found else 1.0


def run_persistence(kind):
    """Return how often the test rejects."""
    worlds = (random_world(np.random.default_rng(seed), kind) for seed in range(REPETITIONS))
    found = [p_value(world, PERMUTATIONS, seed) for seed, world in enumerate(worlds)]
    return {"logs": REPETITIONS, "alarms": sum(p <= LEVEL for p in found)}


def persistence_holds(parts):
    """The persistence test rejects in at most 5% of the logs in which nothing lasts."""
    return all(rare(part, 2) for part in parts.values())


# Sources that watch one world ----------------------------------------------------------------------------------------


def counts_of(n, after=None, paid=None):
    """Return counts of n[source, state, action, outcome].

    An outcome o of state s leads to after[s, o], -1 for an end, and pays paid[s, o]; by default to state o, for 0.
    """
    sources, states, actions, outcomes = n.shape
    after = np.tile(np.arange(outcomes), (states, 1)) if after is None else after
    paid = np.zeros((states, outcomes)) if paid is None else paid
    source, state, action, outcome = np.nonzero(n)
    following, reward, times = after[state, outcome], paid[state, outcome], n[n > 0]
    columns = {"source": source, "step": None, "state": state, "action": action, "next_state": following}
    columns |= {"terminated": following < 0, "n": times, "reward_sum": reward * times}
    columns |= {"reward_min": reward, "reward_max": reward}
    space = cs.Space(range(max(states, outcomes)), range(actions))
    return cs.Counts.combined(space, [f"s{i}" for i in range(sources)], columns)


def _false_contradiction(rng):
    """Whether three sources that are blind to the noise are accused: rare outcomes, uneven policies, few visits."""
    laws = rng.dirichlet(np.full(6, 0.3), (10, 3))
    taken = rng.multinomial(rng.poisson(40, (3, 10)), rng.dirichlet(np.full(3, 0.5), (3, 10)))
    return bool(cs.contradictions(counts_of(rng.multinomial(taken, laws))))


def _false_excess(rng):
    """Whether masses that add up to exactly 1 are called too many: two sources, each sees x lead to one outcome."""
    share = rng.uniform(0.2, 0.8, 5)
    n = np.zeros((2, 5, 2, 2), dtype=int)
    for i, (visits, p) in enumerate(((40, share), (400, 1 - share))):
        n[i, :, 0, i] = rng.binomial(visits, p)
        n[i, :, 1, 0] = visits - n[i, :, 0, i]
    return bool((excess_masses(counts_of(n)).p_value <= LEVEL).any())


def _false_limit(rng):
    """Whether more was never seen than the limit allows."""
    law = rng.dirichlet(np.full(30, 0.2))
    n = rng.multinomial(rng.integers(10, 500), law)
    return bool(law[n == 0].sum() > cs.unseen_limit(counts_of(n[None, None, None]))[0])


SOURCES = {
    "contradictions of blind sources": _false_contradiction,
    "masses that add up to 1": _false_excess,
    "limits of unseen mass": _false_limit,
}


def run_sources(part):
    """Return how often something false is said."""
    rng = np.random.default_rng(0)
    return {"logs": SOURCE_REPETITIONS, "alarms": sum(SOURCES[part](rng) for _ in range(SOURCE_REPETITIONS))}


def sources_hold(parts):
    """What is said of sources that watch one world is false with a probability of at most 0.05."""
    return all(rare(part, 0) for part in parts.values())
