"""Statements of the paper that are false as printed, each with a counterexample that runs and a corrected statement.

- `corrections`: all of them, computed.
- `Correction`: a quantity and its printed bound, which fails; and the same for the statement that is true.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from causal_shaping.bounds import value_ceilings
from causal_shaping.data.arrays import FloatArray
from causal_shaping.errors import AssumptionWarning
from causal_shaping.learners.rules import resolve
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.worlds import load_world
from studies.paper.theory.contraction import CausalBellman
from studies.paper.theory.events import PRINTED, proven_rule, watch
from studies.paper.theory.lemmas import clip_lemma
from studies.paper.theory.regret import printed_regret_bound, regret_bound, visit_bound
from studies.paper.theory.shaped import Shaped

SMALL_BONUS = 0.001
"""The c of examples without noise, in which every lemma holds with any bonus."""


@dataclass(frozen=True)
class Correction:
    """A printed statement of the form "a quantity is at most a bound", which fails, and one that holds.

    Attributes:
        statement: its place in the paper.
        quantity: the quantity in the example.
        found: the value of the quantity.
        printed: its printed bound, which is smaller.
        instead: the corrected statement.
        true_found: the value of the corrected statement's quantity, in the same example.
        true_bound: the bound of that; inf where nothing is claimed.
    """

    statement: str
    quantity: str
    found: float
    printed: float
    instead: str
    true_found: float
    true_bound: float


def corrections() -> list[Correction]:
    """Compute and return every correction."""
    return [make() for make in COUNTEREXAMPLES]


def _fork() -> TabularCMDP:
    """Two steps: the first action leads to a state that pays 1, the second to one that pays nothing."""
    return TabularCMDP(
        next_state=[[[1], [2]], [[3], [3]], [[3], [3]], [[3], [3]]],
        reward=[[[0.0], [0.0]], [[1.0], [1.0]], [[0.0], [0.0]], [[0.0], [0.0]]],
        noise=[[1.0]] * 4,
        terminal=[False, False, False, True],
        start=[1.0, 0.0, 0.0, 0.0],
    )


def _wrong_index() -> Correction:
    """Shaping with one index for both potentials changes what is optimal."""
    model = _fork()
    phi = np.zeros((2, 4))
    phi[0, 2] = 10.0

    def loss(printed: bool) -> float:
        chosen = Shaped(model, phi, 2).shaped_model(printed=printed).optimum(2).greedy()
        return float((model.optimum(2).values - model.evaluate(chosen, 2).values)[0, 0])

    return Correction(
        "Proposition 2.2, shaping keeps the optimal policies",
        "loss of a policy that is optimal after shaping",
        loss(True),
        0.0,
        "r + phi_{h+1}(s') - phi_h(s), with phi_{H+1} = 0 in place of phi_H = 0",
        loss(False),
        0.0,
    )


def _clipped_threshold() -> Correction:
    """The clip lemma with the threshold a c / 2."""
    a, b, c, x = 1.0, 3.0, 4.0, 0.1
    return Correction(
        "Lemma G.2, the clip function",
        f"a + b for a = {a:g}, b = {b:g}, c = {c:g}, x = {x:g}",
        a + b,
        a + b + float(clip_lemma(a, b, c, x, printed=True)),
        "the threshold is x c / 2, not a c / 2; its use with x = 1 / H is right",
        a + b,
        a + b + float(clip_lemma(a, b, c, x)),
    )


def _sum_of_roots() -> Correction:
    """The sum behind the constant 12 of the main theorem."""
    most = 100
    total = float((1 / np.sqrt(np.arange(1, most + 1))).sum())
    return Correction(
        "Theorem 4.5, its first constant (H.8)",
        f"sum of 1 / sqrt(i) up to {most}",
        total,
        math.sqrt(most),
        "2 sqrt(N), so that 12 becomes 24",
        total,
        2 * math.sqrt(most),
    )


def _shortcut(actions: int = 20) -> TabularCMDP:
    """Two steps: first to a state with many actions, of which only the last pays 0.5, or to one that pays 0.8."""
    next_state = np.full((4, actions, 1), 3)
    next_state[0], next_state[0, 1:] = 1, 2
    reward = np.zeros((4, actions, 1))
    reward[0, 1:], reward[1, -1], reward[2] = 0.2, 0.5, 0.8
    return TabularCMDP(next_state, reward, np.ones((4, 1)), [False, False, False, True], [1.0, 0.0, 0.0, 0.0])


def _visits_of_pairs() -> Correction:
    """A pair that is in Sub_Delta because of the last step, but is visited often at the first."""
    c, episodes = 0.005, 200
    shaped = Shaped(_shortcut(), np.full((2, 4), 2.0), 2)  # rewards from 0 to 1, V* <= phi = H, gaps at both steps
    iota = shaped.iota(episodes, PRINTED.p)
    scale = c * float(shaped.potential.max())
    visits = watch(shaped, episodes, learner=resolve(PRINTED, c=c)).visits
    smallest = shaped.gaps.min(axis=0)[0, 0]  # over all steps, as printed
    true = visit_bound(scale, 2, iota, shaped.margins("potential"))
    return Correction(
        "Definition 4.3 and lemma 4.4, visits to Sub_Delta",
        f"visits at the first step of a pair in Sub_Delta, without noise, c = {c:g}",
        float(visits[0, 0, 0]) if shaped.pseudo_suboptimal()[0, 0] else 0.0,
        float(visit_bound(scale, 2, iota, smallest, printed=True)),
        "a margin at that step, y + 2 E phi_{h+1} + margin <= V*_h, which it lacks (shown: visits / bound of others)",
        float((visits / true).max()),
        1.0,
    )


def _bandit(actions: int) -> TabularCMDP:
    """One step: only the last action pays, 1."""
    reward = np.zeros((2, actions, 1))
    reward[0, -1] = 1.0
    return TabularCMDP(np.ones((2, actions, 1), dtype=int), reward, np.ones((2, 1)), [False, True], [1.0, 0.0])


def _first_visit() -> Correction:
    """An action that is never tried according to the printed bound."""
    shaped, episodes = Shaped(_bandit(10), [[1.0, 0.0]], 1), 50
    visits = watch(shaped, episodes, learner=resolve(PRINTED, c=SMALL_BONUS)).visits
    iota = shaped.iota(episodes, PRINTED.p)
    return Correction(
        "Lemma 4.4, the bound itself",
        f"visits of a pair in Sub_Delta, without noise, c = {SMALL_BONUS:g}",
        float(visits[0, 0, 0]) if shaped.pseudo_suboptimal()[0, 0] else 0.0,
        float(visit_bound(SMALL_BONUS, 1, iota, shaped.pair_gaps[0, 0], printed=True)),
        "floor(9 B^2 H iota / margin^2) + 1, since every entry starts at 0",
        float(visits[0, 0, 0]),
        float(visit_bound(SMALL_BONUS, 1, iota, shaped.margins("potential")[0, 0, 0])),
    )


def _first_visits_cost() -> Correction:
    """The regret of trying everything once."""
    shaped, episodes = Shaped(_bandit(10), [[1.0, 0.0]], 1), 50
    regret = float(watch(shaped, episodes, learner=resolve(PRINTED, c=SMALL_BONUS)).regret[-1])
    return Correction(
        "Theorem H.8, terms that it omits",
        f"regret of ten actions, of which one pays 1 and the others 0, phi = V*, c = {SMALL_BONUS:g}",
        regret,
        printed_regret_bound(shaped, episodes, c=SMALL_BONUS).total,
        "first visits cost phi - Q* each, and optimal actions have bonuses as well",
        regret,
        regret_bound(shaped, episodes, scale=SMALL_BONUS, clip="potential").total,
    )


def _zero_gaps() -> Correction:
    """The printed sum over pairs that are suboptimal at some step, with the smallest gap over all steps."""
    world = load_world("lavacross-easy")
    shaped, _ = Shaped(world.model, None, world.horizon).nonnegative()
    episodes, pairs = 1e20, np.isfinite(shaped.pair_gaps)
    optimal_once = int((shaped.gaps.min(axis=0)[pairs] == 0).sum())
    return Correction(
        "Theorem 4.5, Delta(s, x) = min_h Delta_h(s, x)",
        f"bound over the trivial one, lavacross-easy, 1e20 episodes ({optimal_once} of {pairs.sum()} have Delta = 0)",
        math.inf if optimal_once else 0.0,
        1.0,
        "sums over positive gaps, step by step; optimal actions count with the smallest gap of all",
        regret_bound(shaped, episodes).total / shaped.worst_regret / episodes,
        1.0,
    )


def _negative_potential() -> Correction:
    """The printed clip under the best possible potential, where rewards are costs; phi_m^2 = 1."""
    model, horizon, episodes = TabularCMDP([[[0]]], [[[-1.0]]], [[1.0]], [False], [1.0]), 3, 2_000
    shaped = Shaped(model, model.optimum(horizon).values, horizon)
    largest = float(shaped.potential[:-1].max())
    bonus = PRINTED.c * math.sqrt(horizon * largest**2 * shaped.iota(episodes, PRINTED.p))
    return Correction(
        "Lemma 4.2, Q^k >= Q*",
        "Q* - Q^k with phi = V* < 0, without noise",
        -watch(shaped, episodes, learner=resolve(PRINTED, bonus=bonus)).optimism,
        0.0,
        "Q* - phi in place of Q*, and V clipped at 0: the shaped optimum is at most 0, whatever the sign of phi",
        -watch(shaped, episodes, learner=proven_rule(shaped, episodes)).optimism,
        0.0,
    )


def _gamble() -> TabularCMDP:
    """Two steps: a gamble between states worth 1 and 0, or a state worth 0.4. A potential of 1 is a ceiling."""
    next_state = np.full((5, 2, 2), 4)
    next_state[0] = [[1, 2], [3, 3]]
    reward = np.zeros((5, 2, 2))
    reward[1], reward[3] = 1.0, 0.4
    return TabularCMDP(next_state, reward, np.full((5, 2), 0.5), [False] * 4 + [True], [1.0, 0.0, 0.0, 0.0, 0.0])


def _span_of_potential(runs: int = 200, episodes: int = 200, p: float = 0.1) -> Correction:
    """A bonus that scales with the span of phi, which is 0 here."""
    shaped = Shaped(_gamble(), np.ones((2, 5)), 2)

    def broken(scale: float) -> float:
        rule = proven_rule(shaped, episodes, p=p, scale=scale)
        watched = (watch(shaped, episodes, seed=seed, learner=rule) for seed in range(runs))
        return float(np.mean([not run.held["optimism"] for run in watched]))

    return Correction(
        "A bonus that scales with the span of phi (not in the paper)",
        "share of runs in which optimism fails, phi = 1 at every state",
        broken(float(np.ptp(shaped.potential[:-1, :4]))),
        p,
        "the span of y + V*_{h+1}(s'), which is at most reward span + highest ceiling - lowest floor",
        broken(shaped.needed_span),
        p,
    )


def _guess() -> TabularCMDP:
    """A coin: a right guess earns 1 and ends the episode, a wrong one costs 1 and is followed by another guess."""
    next_state = [[[1, 0], [0, 1]], [[1, 1], [1, 1]]]
    reward = [[[1.0, -1.0], [-1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
    return TabularCMDP(next_state, reward, [[0.5, 0.5], [0.5, 0.5]], [False, True], [1.0, 0.0])


def _many_fixed_points() -> Correction:
    """A demonstrator who sees the coin and is always wrong: do(x) may end the episode, which no log shows."""
    model = _guess()
    wrong = np.broadcast_to(np.array([[0.0, 1.0], [1.0, 0.0]]), (2, 2, 2))
    at_random = np.full((2, 2, 2), 0.5)

    def distance(beta: FloatArray) -> float:
        operator = CausalBellman(model.observe(beta, "one"), 1.0)
        one, other = (_iterated(operator, np.array([level, 0.0])) for level in (100.0, 200.0))
        return float(np.abs(one - other).max())

    return Correction(
        "Proposition H.2, one fixed point where P(s, x) > 0",
        "distance between the fixed points reached from two starts, for a demonstrator who is always wrong",
        distance(wrong),
        0.0,
        "sets S_k from what the source shows, not from do(x), if they cover all states (shown: acting at random)",
        distance(at_random),
        0.0,
    )


def _iterated(operator: CausalBellman, values: FloatArray, sweeps: int = 2000) -> FloatArray:
    for _ in range(sweeps):
        values = operator(values)
    return values


def _below_its_image() -> Correction:
    """A value function far above the fixed point, which the operator shrinks."""
    world = load_world("walking-robot")
    uniform = np.full((len(world.states), 2, 2), 0.5)
    operator = CausalBellman(world.model.observe(uniform, "uniform"), 1.0)
    high, best = np.where(operator.terminal, 0.0, 1e9), world.model.optimum().values
    return Correction(
        "Proposition H.2, V <= T V for all V",
        "the largest V - T V, for V = 1e9",
        float((high - operator(high)).max()),
        0.0,
        "V* <= T V* is enough, since T is monotone",
        float((best - operator(best)).max()),
        0.0,
    )


def _negative_reward_bound() -> Correction:
    """Equation 5 where every step costs."""
    world = load_world("windy-empty")
    counts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    best, b = world.model.optimum(world.horizon).values, world.model.reward_range[1]
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        printed = value_ceilings(counts, world.horizon, b, method="paper").values
    return Correction(
        "Equation 5, omega_h = (H - h) b",
        "the largest V* - bound in windy-empty, b = -0.1",
        float((best - printed).max()),
        0.0,
        "termination is worth 0, more than any step: max(0, .)",
        float((best - value_ceilings(counts, world.horizon, b).values).max()),
        0.0,
    )


def _skipped_action() -> Correction:
    """The best action, which no source tried."""
    model = _bandit(2)
    counts = model.observe(np.broadcast_to([1.0, 0.0], (2, 1, 2)), "one")
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        printed = value_ceilings(counts, 1, 1.0, method="paper").values[0, 0]
        joint = value_ceilings(counts, 1, 1.0).values[0, 0]
    best = float(model.optimum(1).values[0, 0])
    return Correction(
        "Equation 5, pairs that were never visited are skipped",
        "V* where the best of two actions was never tried, b = 1",
        best,
        float(printed),
        "every declared action counts, an untried one with its best possible outcome",
        best,
        float(joint),
    )


def _one_reward_missing() -> Correction:
    """The footnote on states in which no source acted."""
    horizon, b = 5, 1.0
    model = TabularCMDP([[[0]], [[1]]], [[[0.0]], [[b]]], [[1.0], [1.0]], [False, False], [1.0, 0.0])
    counts = model.observe(np.ones((2, 1, 1)), "one", horizon=horizon)
    best = float(model.optimum(horizon).values[0, 1])
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        printed = value_ceilings(counts, horizon, b, method="paper").values[0, 1]
    joint = value_ceilings(counts, horizon, b, support="any").values[0, 1]
    return Correction(
        "Footnote on unvisited states, (H - h) b",
        "V* of a state in which no source acted, H = 5, b = 1, first step",
        best,
        float(printed),
        "(H - h + 1) b: a state at step h can still collect that many rewards",
        best,
        float(joint),
    )


COUNTEREXAMPLES: tuple[Callable[[], Correction], ...] = (
    _wrong_index,
    _skipped_action,
    _negative_reward_bound,
    _one_reward_missing,
    _below_its_image,
    _many_fixed_points,
    _negative_potential,
    _visits_of_pairs,
    _first_visit,
    _clipped_threshold,
    _sum_of_roots,
    _zero_gaps,
    _first_visits_cost,
    _span_of_potential,
)
