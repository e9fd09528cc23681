"""The slow, obvious way to what bounds are made of: from the true model, never from counts or masses."""

import itertools
import math

import numpy as np
from scipy.optimize import linprog


def tables(model, h):
    """next_state, reward and noise of a step."""
    return [table if model.steps is None else table[h] for table in (model.next_state, model.reward, model.noise)]


def decisions(model, beta, h):
    return beta if np.ndim(beta) == 3 else beta[h]


def outcomes_of(model, s, x, h=0):
    """The outcomes (next state, reward) of do(x) in s, each with the noises that bring it about."""
    next_state, reward, noise = tables(model, h)
    found = {}
    for u in np.flatnonzero(noise[s]):
        found.setdefault((int(next_state[s, x, u]), float(reward[s, x, u])), []).append(u)
    return found


def shown(model, beta, s, h=0):
    """p_i(x, o | s) of a demonstrator: {(x, o): mass}, what happens only."""
    noise = tables(model, h)[2]
    beta = decisions(model, beta, h)
    result = {}
    for x in range(len(model.actions)):
        for outcome, noises in outcomes_of(model, s, x, h).items():
            mass = sum(noise[s, u] * beta[s, u, x] for u in noises)
            if mass > 0:
                result[x, outcome] = mass
    return result


def worth(model, outcome, following, discount):
    """r + discount * V(s')."""
    after, reward = outcome
    return reward + (0.0 if model.terminal[after] else discount * following[after])


def true_gamma(model, beta, h=0):
    """The smallest Gamma that a demonstrator satisfies, by the definition of the marginal sensitivity model.

    The odds of x, given the outcome that x would have, against the odds given s alone. An action that is never or
    always taken, given an outcome that can happen, needs inf, unless it is never or always taken at all.
    """
    worst = 1.0
    noise = tables(model, h)[2]
    beta = decisions(model, beta, h)
    for s in np.flatnonzero(~model.terminal):
        for x in range(len(model.actions)):
            p = float(noise[s] @ beta[s, :, x])
            if p in (0.0, 1.0):
                continue
            for noises in outcomes_of(model, s, x, h).values():
                mass = sum(noise[s, u] for u in noises)
                q = sum(noise[s, u] * beta[s, u, x] for u in noises) / mass
                if q < 1e-12 or q > 1 - 1e-12:
                    return math.inf
                ratio = (q / (1 - q)) / (p / (1 - p))
                worst = max(worst, ratio, 1 / ratio)
    return worst


def support_holds(model, betas, h=0):
    """Whether every outcome of an action that somebody tried was seen to follow the state."""
    for s in np.flatnonzero(~model.terminal):
        seen = {key for beta in betas for key in shown(model, beta, s, h)}
        followed = {outcome for _, outcome in seen}
        for x in {x for x, _ in seen}:
            if not set(outcomes_of(model, s, x, h)) <= followed:
                return False
    return True


def action_support_holds(model, betas, h=0):
    """Whether every outcome of an action that somebody tried in a state was seen to follow that action there."""
    for s in np.flatnonzero(~model.terminal):
        seen = {key for beta in betas for key in shown(model, beta, s, h)}
        for x in {x for x, _ in seen}:
            if not all((x, outcome) in seen for outcome in outcomes_of(model, s, x, h)):
                return False
    return True


def interval_program(model, betas, s, x, gamma, following, discount, side, by_action=False):
    """The linear program over outcome distributions of (s, x) under an observed support; None if nobody tried x."""
    sources = [shown(model, beta, s) for beta in betas]
    allowed = {outcome for source in sources for a, outcome in source if a == x or not by_action}
    low, high = dict.fromkeys(allowed, 0.0), dict.fromkeys(allowed, 1.0)
    tried = False
    for source in sources:
        p = sum(mass for (action, _), mass in source.items() if action == x)
        if p <= 0:
            continue
        tried = True
        for outcome in allowed:
            share = source.get((x, outcome), 0.0) / p
            low[outcome] = max(low[outcome], share * (p + (1 - p) / gamma))
            if math.isfinite(gamma):
                high[outcome] = min(high[outcome], share * (p + (1 - p) * gamma))
    if not tried:
        return None
    answer = linprog(
        [-side * worth(model, outcome, following, discount) for outcome in allowed],
        A_eq=np.ones((1, len(allowed))),
        b_eq=[1.0],
        bounds=[(min(low[o], high[o]), high[o]) for o in allowed],  # equal limits may cross by rounding
    )
    assert answer.status == 0
    return -side * answer.fun


def response_type_program(model, betas, s, x, following, discount):
    """The linear program over response types: functions from actions to the outcomes that were seen to follow s.

    A source is any joint distribution of its action and the type; the type's own distribution is that of the world,
    the same for all sources, and each source shows exactly what it shows. This knows nothing of masses or intervals.
    """
    sources = [shown(model, beta, s) for beta in betas]
    actions = range(len(model.actions))
    allowed = sorted({outcome for source in sources for _, outcome in source})
    types = list(itertools.product(allowed, repeat=len(actions)))
    # Variables: q(t), then q_i(a, t) source by source.
    size = len(types) * (1 + len(sources) * len(actions))
    position = {
        (i, a, t): len(types) * (1 + i * len(actions) + a) + t
        for i in range(len(sources))
        for a in actions
        for t in range(len(types))
    }
    rows, wanted = [], []
    for i, source in enumerate(sources):
        for t in range(len(types)):
            row = np.zeros(size)
            row[t] = -1
            row[[position[i, a, t] for a in actions]] = 1
            rows.append(row)
            wanted.append(0.0)
        for a, outcome in itertools.product(actions, allowed):
            row = np.zeros(size)
            row[[position[i, a, t] for t, kind in enumerate(types) if kind[a] == outcome]] = 1
            rows.append(row)
            wanted.append(source.get((a, outcome), 0.0))
    cost = np.zeros(size)
    cost[: len(types)] = [-worth(model, kind[x], following, discount) for kind in types]
    answer = linprog(cost, A_eq=np.array(rows), b_eq=wanted, bounds=(0, None))
    assert answer.status == 0, answer.message
    return -answer.fun


def separate(model, betas, horizon, reward_max, support, inside, discount=1.0):
    """The Causal Bellman Optimal Equation source by source, unvisited pairs and endings included: values [h, s].

    `inside`: the best source per (s, x) inside each backup; otherwise a pass per source with the minimum at the end.
    """
    groups = [range(len(betas))] if inside else [[i] for i in range(len(betas))]
    alive = np.flatnonzero(~model.terminal)
    sources = [{s: shown(model, beta, s) for s in alive} for beta in betas]
    passes = []
    for group in groups:
        values = np.zeros((horizon + 1, len(model.states)))
        for h in reversed(range(horizon)):
            following = values[h + 1]
            anything = reward_max + discount * max(0.0, following[alive].max())
            for s in alive:
                seen = {outcome for source in sources for _, outcome in source[s]}
                q_values = []
                for x in range(len(model.actions)):
                    tried = any(key[0] == x for source in sources for key in source[s])
                    w = anything
                    if support == "observed" and tried:
                        w = max(worth(model, outcome, following, discount) for outcome in seen)
                    each = [anything if support == "any" or not tried else w]
                    for i in group:
                        mass = {o: m for (a, o), m in sources[i][s].items() if a == x}
                        proven = sum(m * worth(model, o, following, discount) for o, m in mass.items())
                        each.append(proven + (1 - sum(mass.values())) * w)
                    q_values.append(min(each))
                values[h, s] = max(q_values)
        passes.append(values[:-1])
    return np.min(passes, axis=0)
