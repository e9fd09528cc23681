"""Worlds that agree with what logs prove, from a wider prior than any learner's: some of them are set against the logs.

A drawn world has p = L + F q in each cell, with L as the posterior has it. What free mass does leans on a source by any
amount: not at all, in some states or (state, action) only, by a share, or wholly; and where it does not, q is flat, or
it is what the source shows with the order of outcomes reversed, so that what looks good is bad.

- `draw_lean`: how far a world leans on which source, and where.
- `WidePrior`: draws worlds.
- `Outcomes`, `solve`: a drawn world, and its optimum.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.beliefs import _kernels as kernels
from causal_shaping.beliefs.model import Model
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray

GRAINS = ("everywhere", "by state", "by action", "one action")
"""Where a source misleads: by the same share everywhere, in some states, in some (state, action), or in many states
about one action that does not look best."""

RIGHT = 0.5
"""How likely logs are to mislead nowhere, beyond how far their sources disagree."""

AGREED = 20.0
"""Sources that agree like samples of so many rows are as likely to be right together, as their mean, as one by one."""

TRIAL_SWEEPS = 10
"""How often masses and shares are drawn in turn where rows of randomised sources bind both."""

SMALLEST = 1e-9
"""Outcomes of smaller chances are left out of a drawn world."""

DECIMALS = 9
"""Values of outcomes are rounded to so many decimals of their span before they are put into an order."""


class Lean(NamedTuple):
    """How far a drawn world leans on logs."""

    grain: int  # a position in `GRAINS`
    doubt: float  # 0: a source is right wherever it was not refuted; 1: nobody is
    against: bool  # where it is wrong, the order of its outcomes is reversed; otherwise q is flat
    source: IntArray  # [cells], who is right if anybody is, -1 for nobody
    share: FloatArray  # [cells], how far it is wrong: the share of q that does not lean on it
    agreement: float  # how many visits a source is worth at most: as far as sources agree


class Outcomes(NamedTuple):
    """A drawn world: what can follow each cell."""

    first: LongArray  # [cells + 1]
    after: IntArray  # [outcomes], the next state; the number of states if the episode ends
    reward: FloatArray  # [outcomes]
    chance: FloatArray  # [outcomes]
    sums: FloatArray  # [outcomes], running sums of the chances of a cell, which end in 1


def draw_lean(rng: np.random.Generator, model: Model, looks_best: LongArray) -> Lean:
    """Return how far a world leans on which source: the doubt has a density that is highest at 0 and at 1.

    Args:
        rng: where randomness comes from.
        model: what the logs say.
        looks_best: int64 [places], the action that looks best.
    """
    cells, actions, sources = model.cells, model.shape.actions, len(model.sources)
    grain, doubt, against = int(rng.integers(len(GRAINS))), float(rng.beta(0.5, 0.5)), bool(rng.random() < 0.5)
    if rng.random() < RIGHT:
        doubt = 0.0
    place = np.arange(cells) // actions
    wrong = rng.random(cells) < doubt
    other = (looks_best + 1 + rng.integers(max(actions - 1, 1), size=model.places)) % actions
    there = wrong[place * actions]
    shares = (np.full(cells, doubt), there, wrong, there & (np.arange(cells) % actions == other[place]))
    share = shares[grain].astype(np.float64)
    if sources == 0:
        return Lean(grain, 1.0, False, np.full(cells, -1, dtype=np.int32), np.ones(cells), np.inf)
    each = rng.integers(sources, size=model.places)
    chosen = each[place] if rng.random() < 0.5 else np.full(cells, each[0])
    if sources > 1 and rng.random() < model.agreement / (model.agreement + AGREED):
        chosen = np.full(cells, sources)  # the pool
    against = against or GRAINS[grain] == "one action"
    return Lean(grain, doubt, against, chosen.astype(np.int32), share, model.agreement)


class WidePrior:
    """Worlds that agree with logs; `draw` gives one."""

    def __init__(self, model: Model) -> None:
        self.model, shape = model, model.shape
        memory = model.memory(1)
        plan = np.zeros((model.settings.horizon, shape.states, shape.actions))
        mean = kernels.mean_world(shape, model.guess, memory)
        kernels.plan(shape, memory, mean, model.space.is_admissible.copy(), model.terminal, plan)
        values = np.append(plan.max(axis=-1), np.zeros((len(plan), 1)), axis=1)  # the end is worth 0
        values[:, :-1][:, model.terminal] = 0.0
        values = np.append(values[1:], np.zeros((1, shape.states + 1)), axis=0)  # of the next step
        group = np.repeat(np.arange(len(model.node_first) - 1), np.diff(model.node_first))
        step = group // (shape.states * (shape.actions if shape.by_action else 1)) if shape.steps > 1 else 0
        paid = model.node_paid / model.node_times
        worth = paid + shape.discount * values[step, model.node_after]
        span = np.ptp(worth) if len(worth) else 0.0
        self.value = np.round((worth - worth.min()) / span, DECIMALS) if span > 0 else np.zeros(len(worth))
        """float64 [nodes], what outcomes are worth by the mean of the posterior, as a share of their span."""
        unit = model.node_first[1:] - model.node_first[:-1]
        self.looks_best = plan[: shape.steps].argmax(axis=-1).ravel()
        self.room = int((unit.sum() if shape.by_action else unit.sum() * shape.actions) + model.cells)

    def draw(self, rng: np.random.Generator) -> tuple[Outcomes, Lean]:
        """Return a world, and how far it leans on logs."""
        model, lean, room = self.model, draw_lean(rng, self.model, self.looks_best), self.room
        memory = model.memory(1)
        world = Outcomes(
            np.zeros(model.cells + 1, dtype=np.int64),
            np.zeros(room, dtype=np.int32),
            *(np.zeros(room) for _ in range(3)),
        )
        nodes = len(self.value)
        for _ in range(TRIAL_SWEEPS if model.trials else 1):
            _draw_outcomes(rng, model.shape, model.guess, memory, lean, self.value, nodes, world)
        return world, lean


@njit(nogil=True)
def _dirichlet(rng, weights):  # type: ignore[no-untyped-def]
    """Return a draw from a Dirichlet; where all parts are smaller than any number, one of them takes all."""
    share = np.zeros(len(weights))
    for i in range(len(weights)):
        if weights[i] > 0.0:
            share[i] = rng.standard_gamma(weights[i])
    total = share.sum()
    if total > 0.0:
        return share / total
    left, i = rng.random() * weights.sum(), 0
    while i < len(weights) - 1 and left >= weights[i]:
        left -= weights[i]
        i += 1
    share[i] = 1.0
    return share


@njit(nogil=True)
def _draw_outcomes(rng, shape, guess, memory, lean, value, all_nodes, world):  # type: ignore[no-untyped-def]
    """Draw the masses and the free mass of every cell, and write its outcomes."""
    first, after, paid, chance, sums = world
    logs, at = len(guess.lower), 0
    proposal, shares = np.empty(guess.most), np.empty(guess.most)
    for cell in range(len(memory.head)):
        group = cell if shape.by_action else cell // shape.actions
        nodes, known = memory.group_first[group], memory.group_size[group]
        options = known + (1 if memory.unknown[cell] or known == 0 else 0)
        if 0 <= memory.head[cell] < logs and guess.fixed:
            entry = memory.head[cell]
            while 0 <= entry < logs:
                memory.mass[entry], entry = guess.lower[entry], memory.link[entry]
        elif 0 <= memory.head[cell] < logs:
            kernels._draw_proven(
                rng, cell, memory.head[cell], shape.actions, guess.n, guess.taken, guess.visits[cell // shape.actions],
                guess.gamma, memory.link, memory.seen, memory.mass, memory.share, memory.total, proposal, shares,
            )  # fmt: skip
        proven, own, said = np.zeros(options), np.zeros(options), np.zeros(options)
        c = lean.source[cell]
        trusted = c >= 0 and guess.strength[cell, c] > 0.0 and memory.ratio[cell, c] > -np.inf
        if trusted:
            said[:] = guess.flat[cell, c] / options
        entry = memory.head[cell]
        while entry >= 0:
            node = memory.node[entry]
            proven[node] = memory.mass[entry]
            if trusted and entry < logs:
                said[node] += guess.weight[entry, c]
            entry = memory.link[entry]
        free = max(0.0, 1.0 - proven.sum())
        entry = memory.head[cell]
        while entry >= 0:  # rows of randomised sources: which of them fell into the free part
            node, seen = memory.node[entry], memory.seen[entry]
            mine = free * memory.share[entry]
            if seen > 0.0 and proven[node] == 0.0:
                own[node] = seen
            elif seen > 0.0 and mine > 0.0:
                own[node] = float(rng.binomial(int(seen), mine / (mine + proven[node])))
            entry = memory.link[entry]
        share = lean.share[cell] if trusted else 1.0
        strength = 1.0
        if trusted:
            strength = min(guess.strength[cell, c], lean.agreement, guess.taken[cell].sum() + 1.0)
        q = np.zeros(options)
        if share < 1.0:
            q += (1.0 - share) * _dirichlet(rng, strength * said + own)
        if share > 0.0:
            if trusted and lean.against:
                order = np.argsort(value[nodes : nodes + known], kind="mergesort")
                turned = said.copy()
                for i in range(known):
                    turned[order[i]] = said[order[known - 1 - i]]
                q += share * _dirichlet(rng, strength * turned + own)
            else:
                q += share * _dirichlet(rng, np.full(options, 1.0 / options) + own)
        entry = memory.head[cell]
        while entry >= 0:
            memory.share[entry] = q[memory.node[entry]]
            entry = memory.link[entry]
        first[cell], begin, running = at, at, 0.0
        for i in range(options):
            p = proven[i] + free * q[i]
            if p <= SMALLEST and not (i == options - 1 and at == begin):
                continue
            node = nodes + i if i < known else int(rng.random() * all_nodes)  # what nobody saw is like what was seen
            if i < known or all_nodes > 0:
                after[at], paid[at] = memory.node_after[node], memory.node_paid[node] / memory.node_times[node]
            else:
                after[at], paid[at] = shape.states, shape.reward_max
            running += p
            chance[at], sums[at] = p, running
            at += 1
        for i in range(begin, at):
            chance[i] /= running
            sums[i] /= running
        sums[at - 1] = 1.0
    first[len(memory.head)] = at


@njit(nogil=True)
def _solve(shape, world, admissible, terminal, q_values):  # type: ignore[no-untyped-def]
    horizon, states, actions = q_values.shape
    first, after, paid, chance, _ = world
    values, now = np.zeros(states + 1), np.zeros(states + 1)
    for h in range(horizon - 1, -1, -1):
        layer = h if shape.steps > 1 else 0
        for s in range(states):
            if terminal[s]:
                continue
            now[s] = -np.inf
            for x in range(actions):
                if not admissible[s, x]:
                    q_values[h, s, x] = -np.inf
                    continue
                cell, earned = (layer * states + s) * actions + x, 0.0
                for i in range(first[cell], first[cell + 1]):
                    earned += chance[i] * (paid[i] + shape.discount * values[after[i]])
                q_values[h, s, x] = earned
                now[s] = max(now[s], earned)
        values[:] = now


def solve(model: Model, world: Outcomes, admissible: BoolArray) -> FloatArray:
    """Return the optimal Q-values of a drawn world: float64 [horizon, states, actions], -inf if not admissible."""
    found = np.zeros((model.settings.horizon, model.shape.states, model.shape.actions))
    _solve(model.shape, world, admissible, model.terminal, found)
    return found


def start_of(model: Model, counts: Any) -> tuple[FloatArray, str]:
    """Return where episodes start, as far as counts tell, and how that is known, in words: float64 [states].

    Counts by step know it. Pooled ones do not, but what enters a state less often than it is left must start there.
    """
    states = model.shape.states
    acted = np.bincount(counts.state, counts.n, minlength=states)
    if counts.step is not None:
        found = np.bincount(counts.state, counts.n * (counts.step == 0), minlength=states)
        words = "where logged episodes start"
    elif counts.population:
        found, words = (acted > 0).astype(np.float64), "in any state in which a source acted"
    else:
        inside = counts.outcome_known & ~counts.terminated
        entered = np.bincount(counts.next_state[inside], counts.n[inside], minlength=states)
        found = np.where(acted > 0, np.maximum(acted - entered, 0.0), 0.0)
        words = "where logged episodes seem to start: in states that were left more often than entered"
    if not found.sum() > 0:
        found, words = (acted > 0).astype(np.float64), "in any state in which a source acted"
    return found / math.fsum(found), words
