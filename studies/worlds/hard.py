"""Worlds that nobody tuned, with demonstrators who mislead: where learners that use logs are put to the test.

All kinds of one seed share their tables and differ in who was watched, so that what an agent does without logs is the
same in all of them:

- `random_world`: demonstrators with habits, who also depend on the hidden noise, each at a strength of its own.
- `erratic`: demonstrators without habits, whose choice depends on the noise at random.
- `hostile`: the best action is shown in noise that is bad for it, the others in noise that is good for them.
- `partly_hostile`: one source is blind in four of seven states and hostile in three, the other hostile everywhere.
- `slander`: the best action alone is shown in noise that is bad for it.
- `slander_both`: the same in two sources, and the second-best action is shown whatever the noise.
- `bandit`: one step; an action that pays 0 or 2 against one that pays 0.5 for sure.

Taking logs as if nothing were hidden (plain posterior sampling that starts from their counts) has 3 times the regret of
no logs in random worlds, 5 in erratic ones, 17 in hostile ones and 13 to 14 in the others (means over 30 worlds).

Letters: s, x, u are state, action and hidden noise; beta[s, u, x] is a demonstrator.
"""

from __future__ import annotations

import numpy as np

import causal_shaping as cs
from causal_shaping.worlds import World

STATES, ACTIONS, HORIZON = 8, 3, 30
REWARDS = (0.0, 0.5, 1.0)
UNIFORM = 0.05
"""The share of its steps in which every demonstrator acts at random, whatever the noise."""

SMALLEST_GAP = 0.05
"""The best action of every state is better than the second best by at least so much."""

RAREST_END = 0.1
"""The least chance that an action ends the episode."""

LOG_STEPS = 20_000


# The tables ------------------------------------------------------------------------------------------------------


def random_model(seed: int, states: int = STATES, actions: int = ACTIONS) -> cs.TabularCMDP:
    """Return the tables that all worlds of a seed share.

    The last state is terminal, episodes start in any other. A state has four to six noises of Dirichlet(2) chances. A
    pair of state and action has successors of Dirichlet(1/2) chances, one of which is drawn for each noise, except that
    one noise, drawn among those of a chance of `RAREST_END` or more, ends the episode. So every policy ends, there is
    an optimum without a horizon, and a horizon of 30 hardly changes it. Each noise pays one of `REWARDS`. Tables are
    drawn again until the best action of each state leads by `SMALLEST_GAP`, and no action is best in all states.
    """
    rng = np.random.default_rng([seed, states, actions])
    while True:
        model = _drawn(rng, states, actions)
        gaps = np.sort(model.gaps()[:-1], axis=-1)
        best = model.optimum().greedy()[:-1]
        if gaps[:, 1].min() >= SMALLEST_GAP and (best != best[0]).any():
            return model


def _drawn(rng: np.random.Generator, states: int, actions: int) -> cs.TabularCMDP:
    acting, noises = states - 1, int(rng.integers(4, 7))
    shape, noise = (states, actions, noises), rng.dirichlet(np.full(noises, 2.0), states)
    next_state, reward = np.full(shape, acting), np.zeros(shape)
    for s in range(acting):
        for x in range(actions):
            next_state[s, x] = rng.choice(acting, noises, p=rng.dirichlet(np.full(acting, 0.5)))
            next_state[s, x, rng.choice(np.flatnonzero(noise[s] >= RAREST_END))] = acting
    reward[:acting] = rng.choice(REWARDS, (acting, actions, noises))
    start = np.append(np.full(acting, 1 / acting), 0.0)
    return cs.TabularCMDP(next_state, reward, noise, np.arange(states) == acting, start)


def deviations(model: cs.TabularCMDP) -> np.ndarray:
    """Return how good each noise is for each action: its worth less the mean, in standard deviations, [s, u, x].

    The worth of a noise is what the action pays in it, and the optimal value of where it leads, without a horizon.
    """
    best = model.optimum()
    worth = (model.reward + best.values[model.next_state]).transpose(0, 2, 1)
    away = worth - best.q_values[:, None, :]
    spread = np.sqrt((model.noise[:, :, None] * away**2).sum(axis=1, keepdims=True))
    return np.divide(away, spread, out=np.zeros_like(away), where=spread > 1e-12)


def order_of(model: cs.TabularCMDP) -> np.ndarray:
    """Return the actions of each state from the best to the worst, without a horizon: [s, x]."""
    return np.argsort(-model.optimum().q_values, axis=-1, kind="stable")


def _is_best(model: cs.TabularCMDP) -> np.ndarray:
    """Return whether an action is the best of its state: bool [s, 1, x]."""
    return (order_of(model)[:, :1] == np.arange(len(model.actions)))[:, None, :]


def _stirred(beta: np.ndarray) -> np.ndarray:
    """Return a demonstrator who acts at random in `UNIFORM` of the steps."""
    return (1 - UNIFORM) * beta + UNIFORM / beta.shape[-1]


def _world(kind: str, seed: int, model: cs.TabularCMDP, demonstrators: dict, horizon: int = HORIZON) -> World:
    noises = tuple(f"u{u}" for u in range(model.noise.shape[-1]))
    return World(f"{kind}-{seed}", f"{kind} {seed}", model, horizon, noises, demonstrators)


# Demonstrators ---------------------------------------------------------------------------------------------------


def _random_one(model: cs.TabularCMDP, rng: np.random.Generator, strength: float) -> np.ndarray:
    """A demonstrator with habits, who leans on the noise with a strength, for better, for worse or for no reason."""
    z = deviations(model)
    habits = np.log(rng.dirichlet(np.full(z.shape[-1], 2.0), len(z)))[:, None, :]
    lean = habits + strength * (rng.normal() * z + rng.normal(size=z.shape))
    beta = np.exp(lean - lean.max(axis=-1, keepdims=True))
    return _stirred(beta / beta.sum(axis=-1, keepdims=True))


def _hostile_one(model: cs.TabularCMDP, rng: np.random.Generator) -> np.ndarray:
    """A demonstrator who shows the best action only in noise that is bad for it, any other only in good noise.

    In each noise it chooses among the actions that the noise so suits, by how many standard deviations, times a weight
    of the pair of state and action between 1/2 and 3/2; in noise that suits none, the one that it suits best.
    """
    suits = np.where(_is_best(model), -1.0, 1.0) * deviations(model)
    fitting = np.maximum(suits, 0.0) * rng.uniform(0.5, 1.5, suits[:, :1].shape)
    none = fitting.sum(axis=-1, keepdims=True) <= 1e-12
    least_bad = np.eye(suits.shape[-1])[suits.argmax(axis=-1)]
    weight = np.where(none, least_bad, fitting)
    return _stirred(weight / weight.sum(axis=-1, keepdims=True))


def _blind_one(model: cs.TabularCMDP, rng: np.random.Generator) -> np.ndarray:
    """A demonstrator with habits of Dirichlet(2), who does not look at the noise."""
    states, actions, noises = model.next_state.shape
    return _stirred(np.tile(rng.dirichlet(np.full(actions, 2.0), states)[:, None, :], (1, noises, 1)))


def _slander_one(model: cs.TabularCMDP, rng: np.random.Generator, second: float = 0.0) -> np.ndarray:
    """A demonstrator who shows the best action only in noise that is bad for it; the others without looking.

    In bad noise the best action has a share between 0.4 and 0.8, otherwise none. The others share the rest by habits
    that do not depend on the noise. With `second`, the second-best action has that share in every noise, and the best
    and the others share what it leaves.
    """
    z, is_best = deviations(model), _is_best(model)
    is_second = (order_of(model)[:, 1:2] == np.arange(z.shape[-1]))[:, None, :] & (second > 0)
    habits = np.where(is_best | is_second, 0.0, rng.dirichlet(np.full(z.shape[-1], 2.0), len(z))[:, None, :])
    habits /= habits.sum(axis=-1, keepdims=True)
    bad = ((z < 0) & is_best).any(axis=-1, keepdims=True)  # [s, u, 1]
    shown = np.where(bad, rng.uniform(0.4, 0.8, (len(z), 1, 1)), 0.0)
    return _stirred((1 - second) * (shown * is_best + (1 - shown) * habits) + second * is_second)


# Worlds ----------------------------------------------------------------------------------------------------------


def random_world(seed: int, states: int = STATES, actions: int = ACTIONS) -> World:
    """Two or three demonstrators who depend on the noise at a random strength of up to 4.

    In one world of three the first is nearly blind, of strength 0.05. Beside habits, a demonstrator leans on how good
    the noise is for an action, by a factor that may have either sign, and on a whim for each noise.
    """
    model, rng = random_model(seed, states, actions), np.random.default_rng([seed, 1])
    strengths = rng.uniform(0, 4, int(rng.integers(2, 4)))
    if rng.random() < 1 / 3:
        strengths[0] = 0.05
    watched = {f"source{i}": _random_one(model, rng, strength) for i, strength in enumerate(strengths)}
    return _world("random", seed, model, watched)


def erratic(seed: int) -> World:
    """Two demonstrators without habits: in each state and noise their chances are drawn anew, of Dirichlet(0.3)."""
    model, rng = random_model(seed), np.random.default_rng([seed, 7])
    tables = rng.dirichlet(np.full(ACTIONS, 0.3), (2, *model.noise.shape))
    return _world("erratic", seed, model, dict(zip(("first", "second"), _stirred(tables), strict=True)))


def hostile(seed: int) -> World:
    """Two demonstrators who show the best action only in noise that is bad for it, any other only in good noise."""
    model, rng = random_model(seed), np.random.default_rng([seed, 2])
    return _world("hostile", seed, model, {name: _hostile_one(model, rng) for name in ("first", "second")})


def partly_hostile(seed: int) -> World:
    """One source is blind in four sevenths of the states, drawn at random, and hostile in the rest.

    The other is hostile everywhere.
    """
    model, rng = random_model(seed), np.random.default_rng([seed, 3])
    blind = np.zeros(STATES, dtype=bool)
    blind[rng.permutation(STATES - 1)[: round((STATES - 1) * 4 / 7)]] = True
    partly = np.where(blind[:, None, None], _blind_one(model, rng), _hostile_one(model, rng))
    return _world("partly-hostile", seed, model, {"partly": partly, "hostile": _hostile_one(model, rng)})


def slander(seed: int) -> World:
    """Two demonstrators who show the best action only in noise that is bad for it, the others without looking."""
    model, rng = random_model(seed), np.random.default_rng([seed, 4])
    return _world("slander", seed, model, {name: _slander_one(model, rng) for name in ("first", "second")})


def slander_both(seed: int) -> World:
    """Slander in two sources, in which the second-best action is unconfounded.

    It has a share of 0.3 in one and 0.4 in the other, whatever the noise. The best is shown in bad noise only.
    """
    model, rng = random_model(seed), np.random.default_rng([seed, 5])
    shares = {"first": 0.3, "second": 0.4}
    watched = {name: _slander_one(model, rng, share) for name, share in shares.items()}
    return _world("slander-both", seed, model, watched)


KINDS = {
    "random": random_world,
    "erratic": erratic,
    "hostile": hostile,
    "partly hostile": partly_hostile,
    "slander": slander,
    "slander, second unconfounded": slander_both,
}


def bandit(seed: int, scale: float = 1.0, arms: int = 2) -> World:
    """One step: an action pays 0 or 2 with equal chances, one pays 0.5 for sure, any further pays 0 or 1.

    One of ten equally likely noises decides what all of them pay: the first pays 2 in five of them, drawn at random,
    a further one 1 in one to eight of them. Rewards are multiplied by `scale`, and actions are in random order. Two
    demonstrators choose the best action in bad noise rather than in good ("slander": chances 0.45 and 0.05), or the
    other way round ("flatter"), and the others without looking.
    """
    rng, noises = np.random.default_rng([seed, arms, 6]), 10
    pays = np.zeros((arms, noises))
    pays[0, rng.permutation(noises)[:5]], pays[1] = 2.0, 0.5
    for x in range(2, arms):
        pays[x, rng.permutation(noises)[: rng.integers(1, 9)]] = 1.0
    order = rng.permutation(arms)
    good = pays[0] > 0
    demonstrators = {}
    for name, chance in (("slander", np.where(good, 0.05, 0.45)), ("flatter", np.where(good, 0.45, 0.05))):
        beta = np.repeat(((1 - chance) / (arms - 1))[:, None], arms, axis=1)
        beta[:, 0] = chance
        demonstrators[name] = np.stack([beta[:, order], beta[:, order]])
    reward = np.stack([scale * pays[order], np.zeros((arms, noises))])
    model = cs.TabularCMDP(
        np.ones((2, arms, noises), dtype=int), reward, np.full((2, noises), 1 / noises), [False, True], [1.0, 0.0]
    )
    return _world("bandit", seed, model, demonstrators, horizon=1)


# What is measured ------------------------------------------------------------------------------------------------


def counts_of(world: World, steps: int = LOG_STEPS, seed: int = 0, sources: list[str] | None = None) -> cs.Counts:
    """Return the counts of logs of the demonstrators, all or those named, so many steps each; states are declared."""
    logs = [world.collect(name, steps, seed) for name in sources or world.demonstrators]
    return cs.count(logs, states=world.states, actions=world.actions)


def mean_gap(world: World) -> float:
    """Return V* - Q*, without a horizon, on average over the actions that are not best, of states that act.

    Regret over it is about the number of mistakes, and does not depend on the scale of rewards.
    """
    gaps = world.model.gaps()[~world.model.terminal]
    return float(gaps.sum() / (gaps.size - len(gaps)))
