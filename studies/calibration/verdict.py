"""How often the verdict on ceilings is right, in random worlds with trials, good, bad and hostile demonstrators."""

import math
import warnings

import numpy as np

import causal_shaping as cs

PARTS = [f"seed {seed}" for seed in range(4)]
WORLDS = 100
"""The worlds of a part."""

WORDS = {True: "help", None: "doubtful", False: "no help"}


def random_world(rng):
    """Return a world with its demonstrators, and their confounding."""
    n_actions, n_noises, horizon = (int(rng.integers(*size)) for size in ((2, 6), (2, 5), (3, 13)))
    side = int(rng.integers(3, 6))
    n_states = side**2 if (shape := rng.choice(["grid", "chain", "sparse", "dense"])) == "grid" else rng.integers(5, 21)
    size = (n_states, n_actions, n_noises)
    if shape == "grid":
        moves = np.array([(0, 1), (1, 0), (0, -1), (-1, 0), (0, 0)])
        wind = np.vstack([[(0, 0)], moves[rng.integers(0, 5, n_noises - 1)]])
        place = np.stack(np.divmod(np.arange(n_states), side), axis=-1)
        moved = np.clip(place[:, None, None] + moves[np.arange(n_actions)][:, None] + wind, 0, side - 1)
        next_state = moved[..., 0] * side + moved[..., 1]
    elif shape == "chain":
        moved = np.arange(n_states)[:, None, None] + rng.integers(-1, 2, (n_actions, n_noises))
        next_state = np.clip(moved, 0, n_states - 1)
    elif shape == "sparse":
        near = rng.integers(0, n_states, (n_states, 3))
        next_state = np.take_along_axis(near, rng.integers(0, 3, (n_states, n_actions * n_noises)), 1).reshape(size)
    else:
        next_state = rng.integers(0, n_states, size)
    paid = {
        "by state": lambda: rng.random(n_states)[:, None, None] + 0.3 * rng.random(size),
        "by next state": lambda: rng.random(n_states)[next_state],
        "by all": lambda: rng.random(size),
        "rarely": lambda: (rng.random(n_states) < 0.15)[next_state] + np.zeros(size),
    }
    reward = np.round(10 * paid[rng.choice(list(paid))]()) / 10 - rng.choice([0.0, 0.5, 1.0])
    terminal = np.zeros(n_states, dtype=bool)
    if rng.random() < 0.5:
        terminal[rng.choice(n_states, max(1, n_states // 8), replace=False)] = True
    next_state[terminal], reward[terminal] = np.flatnonzero(terminal)[:, None, None], 0.0
    noise = rng.dirichlet(np.full(n_noises, rng.choice([0.5, 1.0, 3.0])), n_states)
    model = cs.TabularCMDP(next_state, reward, noise, terminal, ~terminal / (~terminal).sum())
    names, confounding = _sources(rng)
    table = {name: _demonstrator(name, model, horizon, rng) for name in names}
    return cs.World("random", "random", model, horizon, tuple(map(str, range(n_noises))), table), confounding


def _sources(rng):
    """Return names of demonstrators, and their confounding."""
    case = rng.choice(["any", "any", "with a trial", "a trial", "misleading"])
    if case == "misleading":
        return ["bad", "hostile"], math.inf
    if case == "a trial":
        return ["random"], {"random": 1.0}
    if case == "with a trial":
        return ["random", str(rng.choice(["good", "bad", "hostile"]))], {"random": 1.0}
    every = ["good", "bad", "random", "mixed", "hostile", "blind"]
    names = [str(name) for name in rng.choice(every, int(rng.integers(1, 4)), replace=False)]
    return names, float(rng.choice([1.5, 3.0, 10.0])) if rng.random() < 0.25 else math.inf


def _demonstrator(name, model, horizon, rng):
    """Return beta[s, u, x]; hostile: shows the best action only in noise that makes it bad."""
    n_states, n_actions, n_noises = model.next_state.shape
    best = model.optimum(horizon)
    later = np.where(model.terminal, 0.0, best.values[1])
    value = model.reward + later[model.next_state]  # [s, x, u], what x will earn in that noise
    blind = best.q_values[0].argmax(axis=1)
    if name == "hostile":
        own = np.take_along_axis(value, blind[:, None, None], 1)[:, 0]
        others = np.where(np.arange(n_actions)[:, None] == blind[:, None, None], -np.inf, value).argmax(axis=1)
        chosen = np.where(own <= np.median(own, axis=1, keepdims=True), blind[:, None], others)
    else:
        tables = {"good": value.argmax(axis=1), "bad": value.argmin(axis=1)}
        chosen = tables.get(name, np.tile(blind[:, None], (1, n_noises)))
    beta = np.eye(n_actions)[chosen]
    if name == "random":
        return np.full_like(beta, 1 / n_actions)
    if name == "mixed":
        beta = rng.dirichlet(np.ones(n_actions), (n_states, n_noises))
    share = rng.choice([0.02, 0.1, 0.3])
    return (1 - share) * beta + share / n_actions


def run_part(part):
    """Return how often the verdict said what, by what was true."""
    said = {f"{true} / {word}": 0 for true in WORDS.values() for word in WORDS.values()}
    for i in range(WORLDS):
        rng = np.random.default_rng([15, int(part.split()[-1]), i])
        world, confounding = random_world(rng)
        steps = int(rng.choice([0, 300, 3_000, 30_000]))
        confidence = 0.95 if steps and rng.random() < 0.3 else None
        counts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
        if steps:
            counts = cs.count([world.collect(name, steps, seed=i) for name in world.demonstrators])
        options = {"support": str(rng.choice(["observed", "observed", "any"])), "confidence": confidence}
        reward_max = world.model.reward_range[1]
        try:
            with warnings.catch_warnings(action="ignore"):
                found = cs.value_ceilings(counts, world.horizon, reward_max, confounding=confounding, **options)
        except cs.ContradictionError:
            continue
        which = ~found.vacuous[0] & ~found.terminal
        best = world.model.optimum(world.horizon).values[0, which]
        if which.sum() < 3 or best.std() < 1e-9:
            continue
        left = (best - found.values[0, which]).std() / best.std()
        true = True if left < 0.75 else False if left > 0.95 else None
        said[f"{WORDS[true]} / {WORDS[found.informative]}"] += 1
    return {"worlds": sum(said.values()), "true / said": said}


def holds(parts):
    """The verdict calls no more than 4% of the ceilings in 400 random worlds the opposite of what they are."""
    said = [part["true / said"] for part in parts.values()]
    opposite = sum(one["help / no help"] + one["no help / help"] for one in said)
    return opposite <= 0.04 * sum(part["worlds"] for part in parts.values())
