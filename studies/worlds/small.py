"""Small worlds that are not the paper's, with rare outcomes: where limits at a confidence are put to the test.

Each is written as what an action does in a state, [(chance, next state, reward), ...]. One hidden number, uniform on 0
to 1, decides what all actions would do, so a demonstrator who sees it knows what each would bring.
"""

from dataclasses import dataclass

import numpy as np
from independent import NOWHERE, Demonstrator, TrueWorld, optimum

END = "end"


@dataclass(frozen=True)
class SmallWorld:
    """A world, who acted in it, and how it is logged."""

    world: TrueWorld
    demonstrators: dict
    episodes: dict  # how many of each demonstrator are logged
    step_indexed: bool = False
    edges: tuple | None = None
    jitter: float = 0.0  # how far a reward lies from the table's, uniformly; its bins are then found in the sample


def tables(effects, horizon, start, discount=1.0, stationary=False):
    """A world from {state: {action: [(chance, next state, reward)]}}, or a list of such, one a step.

    Actions that a state leaves out are inadmissible there. States that do nothing are terminal.
    """
    by_step = effects if isinstance(effects, list) else [effects]
    states = list(by_step[0])
    actions = list(dict.fromkeys(x for doing in by_step[0].values() for x in doing))
    cuts = {
        (t, s): np.unique(
            np.round([0.0, 1.0, *(c for parts in doing.values() for c in np.cumsum([p for p, *_ in parts]))], 12)
        )
        for t, step in enumerate(by_step)
        for s, doing in step.items()
    }
    n_noises = max(map(len, cuts.values())) - 1
    shape = (len(by_step), len(states), len(actions), n_noises)
    next_state, reward = np.full(shape, NOWHERE), np.zeros(shape)
    noise, admissible = np.zeros((shape[0], shape[1], n_noises)), np.ones(shape[1:3], dtype=bool)
    terminal = np.array([not doing for doing in by_step[0].values()])
    for (t, s), cut in cuts.items():
        i, doing = states.index(s), by_step[t][s]
        noise[t, i, : len(cut) - 1] = np.diff(cut)
        if doing:
            admissible[i] = [x in doing for x in actions]
        for x, parts in doing.items():
            ends = np.cumsum([p for p, *_ in parts])
            for u in range(len(cut) - 1):
                _, after, paid = parts[np.searchsorted(ends, (cut[u] + cut[u + 1]) / 2)]
                next_state[t, i, actions.index(x), u] = NOWHERE if after == END else states.index(after)
                reward[t, i, actions.index(x), u] = paid
    ended = (next_state == NOWHERE) | terminal[next_state]
    begin = np.array([start.get(s, 0.0) for s in states])
    hidden = np.zeros(len(states), dtype=bool)
    return TrueWorld(
        next_state, ended, reward, noise, terminal, begin, admissible, hidden, horizon, discount, stationary
    )


def demonstrators_of(world, length):
    """One who knows the noise and does what is best in it, one who does what is worst, one who is blind."""
    values, _ = optimum(world)
    after = values if world.stationary else np.append(values[1:], 0 * values[:1], axis=0)
    uniform = world.admissible / world.admissible.sum(-1, keepdims=True)
    seeing = {"good": [], "bad": []}
    for h in range(length):
        t = world.at(h)
        following = after if world.stationary else after[min(h, len(after) - 1)]
        worth = world.reward[t] + world.discount * np.where(world.ends[t], 0.0, following[world.next_state[t]])
        worth = worth.transpose(0, 2, 1)  # [s, u, x]
        for name, side in (("good", 1.0), ("bad", -1.0)):
            best = np.where(world.admissible[:, None], side * worth, -np.inf).argmax(-1)
            seeing[name].append(0.9 * np.eye(worth.shape[-1])[best] + 0.1 * uniform[:, None])
    blind = np.broadcast_to(uniform[:, None], worth.shape)[None]
    betas = {name: np.array(beta) for name, beta in seeing.items()} | {"blind": blind}
    nothing = np.zeros(world.reward.shape[1:])
    return {name: Demonstrator(beta, length, nothing) for name, beta in betas.items()}


def _made(world, length, episodes, **more):
    people = demonstrators_of(world, length)
    return SmallWorld(world, people, dict.fromkeys(people, episodes), **more)


def ward():
    """Rare deaths and rare recoveries, 0.7% to 2.5% of what an action does."""
    effects = {
        "well": {
            "wait": [(0.025, "home", 1.0), (0.9, "well", 0.0), (0.075, "ill", 0.0)],
            "treat": [(0.195, "home", 0.9), (0.785, "well", -0.1), (0.02, "ill", -0.1)],
        },
        "ill": {
            "wait": [(0.2, "well", 0.0), (0.78, "ill", -0.1), (0.02, "dead", -1.0)],
            "treat": [(0.6, "well", -0.1), (0.393, "ill", -0.2), (0.007, "dead", -1.1)],
        },
        "home": {},
        "dead": {},
    }
    return _made(tables(effects, 4, {"well": 0.5, "ill": 0.5}), 4, 2_000)


def lottery():
    """Rare prizes of 0.5% and 1%: what was not seen yet is what is best."""
    effects = {
        "lobby": {
            "play": [(0.01, END, 10.0), (0.015, "lobby", 2.0), (0.975, "lobby", -0.1)],
            "save": [(0.5, "lobby", 0.1), (0.5, "lobby", 0.0)],
        },
        "table": {
            "play": [(0.02, END, 5.0), (0.6, "lobby", 0.0), (0.38, "table", -0.1)],
            "save": [(0.9, "table", 0.05), (0.1, "lobby", 0.0)],
        },
    }
    return _made(tables(effects, 5, {"lobby": 0.6, "table": 0.4}), 5, 150)


def machine():
    """A breakdown of 0.4%, a bargain of 2%, an endless life with a discount."""
    effects = {
        "good": {
            "run": [(0.02, "good", 3.0), (0.876, "good", 1.0), (0.1, "worn", 1.0), (0.004, "broken", -2.0)],
            "rest": [(0.98, "good", 0.1), (0.02, "worn", 0.1)],
        },
        "worn": {
            "run": [(0.7, "worn", 0.8), (0.3, "broken", -1.0)],
            "rest": [(0.975, "worn", 0.0), (0.025, "good", 0.0)],
            "mend": [(0.9, "good", -0.5), (0.1, "worn", -0.5)],
        },
        "broken": {"mend": [(0.5, "worn", -1.0), (0.48, "broken", -1.0), (0.02, END, -3.0)]},
    }
    start = {"good": 0.6, "worn": 0.3, "broken": 0.1}
    return _made(tables(effects, 1, start, discount=0.8, stationary=True), 20, 600)


def road():
    """Rewards of very many values, cut into bins whose edges are fixed; a crash of 1%."""
    rng = np.random.default_rng(0)

    def spread(chance, after, low, high, n=30):
        return [(chance / n, after, float(reward)) for reward in rng.uniform(low, high, n)]

    effects = {
        "town": {
            "fast": [*spread(0.79, "open", 0.0, 1.0), *spread(0.2, "town", -0.5, 0.5), (0.01, END, -3.0)],
            "slow": [*spread(0.6, "open", -0.2, 0.6), *spread(0.4, "town", -0.2, 0.4)],
        },
        "open": {
            "fast": [*spread(0.9, "open", 0.2, 1.4), *spread(0.09, "town", -0.5, 0.5), (0.01, END, -3.0)],
            "slow": [*spread(0.9, "open", 0.0, 0.8), *spread(0.1, "town", -0.5, 0.5)],
        },
    }
    return _made(tables(effects, 3, {"town": 0.5, "open": 0.5}), 3, 2_000, edges=(-1.0, -0.1, 0.2, 0.5, 0.8, 1.1))


def shop():
    """Actions that exist in some states only, mixed signs, a theft of 0.2% and a big sale of 0.5%."""
    effects = {
        "stocked": {
            "sell": [(0.005, "empty", 8.0), (0.493, "empty", 1.0), (0.5, "stocked", 0.0), (0.002, END, -5.0)],
            "wait": [(0.975, "stocked", -0.05), (0.025, "empty", 1.0)],
        },
        "empty": {
            "order": [(0.8, "stocked", -0.4), (0.2, "empty", -0.4)],
            "wait": [(0.98, "empty", -0.05), (0.02, "stocked", -0.05)],
        },
    }
    return _made(tables(effects, 4, {"stocked": 0.7, "empty": 0.3}, discount=0.9), 4, 3_000)


def season():
    """Other dynamics at each step, counts by step, frost of 1.5% in spring and hail of 2.5% in summer."""
    early = {
        "field": {
            "sow": [(0.915, "grown", -0.2), (0.07, "field", -0.2), (0.015, "lost", -0.4)],
            "wait": [(0.9, "field", 0.0), (0.1, "grown", 0.0)],
        },
        "grown": {
            "sow": [(1.0, "grown", -0.3)],
            "wait": [(0.975, "grown", 0.0), (0.025, END, 2.0)],
        },
        "lost": {"wait": [(0.98, "lost", -0.1), (0.02, "field", 0.0)]},
    }
    late = {
        "field": {"sow": [(0.5, "grown", -0.2), (0.5, "field", -0.2)], "wait": [(1.0, "field", 0.0)]},
        "grown": {"sow": [(1.0, "grown", -0.3)], "wait": [(0.6, END, 1.0), (0.375, "grown", 0.0), (0.025, END, -1.0)]},
        "lost": {"wait": [(1.0, "lost", -0.1)]},
    }
    world = tables([early, late, late], 3, {"field": 0.6, "grown": 0.3, "lost": 0.1})
    return _made(world, 3, 2_500, step_indexed=True)


def commute():
    """Rewards that are never twice the same, cut into bins that are found in the sample."""
    effects = {
        "home": {
            "drive": [(0.88, "work", 0.4), (0.1, "home", -0.6), (0.02, END, -2.0)],
            "walk": [(0.7, "work", 0.1), (0.3, "home", 0.0)],
        },
        "work": {
            "drive": [(0.95, "home", 0.8), (0.05, "work", 0.1)],
            "walk": [(0.6, "home", 0.5), (0.4, "work", 0.2)],
        },
    }
    return _made(tables(effects, 3, {"home": 0.6, "work": 0.4}), 3, 500, jitter=0.5)


def raffle():
    """One draw at one of four booths, with prizes of 0.2% to 2.5%: most samples lack some prize."""
    shares = {"red": 0.002, "blue": 0.005, "green": 0.01, "white": 0.025}
    effects = {booth: {"draw": [(p, END, 10.0), (0.5, END, 0.01), (0.5 - p, END, 0.0)]} for booth, p in shares.items()}
    return _made(tables(effects, 1, dict(zip(shares, (0.4, 0.3, 0.2, 0.1), strict=True))), 1, 300)


WORLDS = {made.__name__: made for made in (raffle, shop, season, commute, road, lottery, ward, machine)}
