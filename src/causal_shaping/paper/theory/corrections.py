"""Printed and corrected: statements of the paper that are false as printed, each with a counterexample that runs.

- `corrections`: all of them, computed.
- `Correction`: a quantity, what print says it is at most, what it is; and the same for what is true instead.
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
from causal_shaping.learners.rules import PRESETS, resolve
from causal_shaping.models.cmdp import TabularCMDP
from causal_shaping.paper.theory.contraction import CausalBellman
from causal_shaping.paper.theory.events import iota_of, proven_rule, watch
from causal_shaping.paper.theory.lemmas import clip_lemma
from causal_shaping.paper.theory.regret import printed_regret_bound, regret_bound, visit_bound
from causal_shaping.paper.theory.shaped import Shaped
from causal_shaping.worlds import load_world

PRINTED = PRESETS["q-ucb-shaping"]


@dataclass(frozen=True)
class Correction:
    """A statement of the form "a quantity is at most a bound", which fails, and one that holds.

    Attributes:
        statement: where it stands in the paper.
        quantity: what is bounded, in the example.
        found: what it is.
        printed: what is claimed that it is at most: less.
        instead: what is true.
        true_found: the quantity of what is true, in the same example.
        true_bound: what that is at most, inf where nothing is claimed.
    """

    statement: str
    quantity: str
    found: float
    printed: float
    instead: str
    true_found: float
    true_bound: float


def corrections() -> list[Correction]:
    """Return every correction, computed now."""
    return [make() for make in COUNTEREXAMPLES]


def fork() -> TabularCMDP:
    """Two steps: left to a state that then pays 1, right to one that pays nothing."""
    return TabularCMDP(
        next_state=[[[1], [2]], [[3], [3]], [[3], [3]], [[3], [3]]],
        reward=[[[0.0], [0.0]], [[1.0], [1.0]], [[0.0], [0.0]], [[0.0], [0.0]]],
        noise=[[1.0]] * 4,
        terminal=[False, False, False, True],
        start=[1.0, 0.0, 0.0, 0.0],
    )


def wrong_index() -> Correction:
    """Shaping with one index for both potentials changes what is optimal."""
    model = fork()
    phi = np.zeros((2, 4))
    phi[0, 2] = 10.0

    def lost(printed: bool) -> float:
        chosen = Shaped(model, phi, 2).shaped_model(printed).optimum(2).greedy()
        return float((model.optimum(2).values - model.evaluate(chosen, 2).values)[0, 0])

    return Correction(
        "Proposition 2.2, shaping keeps the optimal policies",
        "what a policy that is optimal after shaping loses",
        lost(True),
        0.0,
        "r + phi_{h+1}(s') - phi_h(s), with phi_{H+1} = 0 in place of phi_H = 0",
        lost(False),
        0.0,
    )


def clipped_threshold() -> Correction:
    """The clip lemma with a c / 2."""
    a, b, c, x = 1.0, 3.0, 4.0, 0.1
    return Correction(
        "Lemma G.2, the clip function",
        f"a + b for a = {a:g}, b = {b:g}, c = {c:g}, x = {x:g}",
        a + b,
        a + b + float(clip_lemma(a, b, c, x, printed=True)),
        "the threshold is x c / 2, not a c / 2; x = 1 / H in its use, which is right",
        a + b,
        a + b + float(clip_lemma(a, b, c, x)),
    )


def sum_of_roots() -> Correction:
    """The sum behind the 12 of the main theorem."""
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


def shortcut(actions: int = 20) -> TabularCMDP:
    """Two steps: first to a state with many actions, of which the last one pays 0.5, or to one that pays 0.8."""
    next_state = np.full((4, actions, 1), 3)
    next_state[0], next_state[0, 1:] = 1, 2
    reward = np.zeros((4, actions, 1))
    reward[0, 1:], reward[1, -1], reward[2] = 0.2, 0.5, 0.8
    return TabularCMDP(next_state, reward, np.ones((4, 1)), [False, False, False, True], [1.0, 0.0, 0.0, 0.0])


def visits_of_pairs() -> Correction:
    """A pair that is in Sub_Delta because of the last step is visited often at the first."""
    c, episodes = 0.005, 200
    shaped = Shaped(shortcut(), np.full((2, 4), 2.0), 2)  # rewards from 0 to 1, V* <= phi = H, gaps at both steps
    iota = iota_of(shaped, episodes, PRINTED.p)
    scale = c * float(shaped.potential.max())
    visits = watch(shaped, episodes, learner=resolve(PRINTED, c=c)).visits
    smallest = shaped.gaps.min(axis=0)[0, 0]  # over all steps, as printed
    true = visit_bound(scale, 2, iota, shaped.margins("potential"))
    return Correction(
        "Definition 4.3 and lemma 4.4, visits to Sub_Delta",
        f"visits at the first step of a pair in Sub_Delta, without noise, c = {c:g}",
        float(visits[0, 0, 0]) if shaped.pseudo_suboptimal()[0, 0] else 0.0,
        float(visit_bound(scale, 2, iota, smallest, printed=True)),
        "a margin at that step, y + 2 E phi_{h+1} + margin <= V*_h, which it lacks here (visits over bound of others)",
        float((visits / true).max()),
        1.0,
    )


def bandit(actions: int) -> TabularCMDP:
    """One step: only the last action pays, 1."""
    reward = np.zeros((2, actions, 1))
    reward[0, -1] = 1.0
    return TabularCMDP(np.ones((2, actions, 1), dtype=int), reward, np.ones((2, 1)), [False, True], [1.0, 0.0])


SMALL_BONUS = 0.001
"""The c of examples without noise, in which every lemma holds with any bonus."""


def first_visit() -> Correction:
    """An action of which print says that it is never tried."""
    shaped, episodes = Shaped(bandit(10), [[1.0, 0.0]], 1), 50
    visits = watch(shaped, episodes, learner=resolve(PRINTED, c=SMALL_BONUS)).visits
    iota = iota_of(shaped, episodes, PRINTED.p)
    return Correction(
        "Lemma 4.4, the bound itself",
        f"visits of a pair in Sub_Delta, without noise, c = {SMALL_BONUS:g}",
        float(visits[0, 0, 0]) if shaped.pseudo_suboptimal()[0, 0] else 0.0,
        float(visit_bound(SMALL_BONUS, 1, iota, shaped.pair_gaps[0, 0], printed=True)),
        "floor(9 B^2 H iota / margin^2) + 1, since every entry starts at 0",
        float(visits[0, 0, 0]),
        float(visit_bound(SMALL_BONUS, 1, iota, shaped.margins("potential")[0, 0, 0])),
    )


def first_visits_cost() -> Correction:
    """The regret of trying everything once."""
    shaped, episodes = Shaped(bandit(10), [[1.0, 0.0]], 1), 50
    regret = float(watch(shaped, episodes, learner=resolve(PRINTED, c=SMALL_BONUS)).regret[-1])
    return Correction(
        "Theorem H.8, what it leaves out",
        f"regret of ten actions, of which one pays 1 and the others 0, phi = V*, c = {SMALL_BONUS:g}",
        regret,
        printed_regret_bound(shaped, episodes, c=SMALL_BONUS).total,
        "first visits cost phi - Q* each, and optimal actions have bonuses, too",
        regret,
        regret_bound(shaped, episodes, scale=SMALL_BONUS, clip="potential").total,
    )


def zero_gaps() -> Correction:
    """The printed sum over pairs that are suboptimal at some step, with the least gap over all steps."""
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


def negative_potential() -> Correction:
    """The printed clip under the best potential that there is, where rewards are costs; phi_m^2 = 1."""
    model, horizon, episodes = TabularCMDP([[[0]]], [[[-1.0]]], [[1.0]], [False], [1.0]), 3, 2_000
    shaped = Shaped(model, model.optimum(horizon).values, horizon)
    largest = float(shaped.potential[:-1].max())
    bonus = PRINTED.c * math.sqrt(horizon * largest**2 * iota_of(shaped, episodes, PRINTED.p))
    return Correction(
        "Lemma 4.2, Q^k >= Q*",
        "Q* - Q^k with phi = V* < 0, without noise",
        -watch(shaped, episodes, learner=resolve(PRINTED, bonus=bonus)).optimism,
        0.0,
        "Q* - phi in place of Q*, and V clipped at 0: the shaped optimum is at most 0, whatever the sign of phi",
        -watch(shaped, episodes, learner=proven_rule(shaped, episodes)).optimism,
        0.0,
    )


def gamble() -> TabularCMDP:
    """Two steps: a gamble between states worth 1 and 0, or a state worth 0.4. A potential of 1 is a ceiling."""
    next_state = np.full((5, 2, 2), 4)
    next_state[0] = [[1, 2], [3, 3]]
    reward = np.zeros((5, 2, 2))
    reward[1], reward[3] = 1.0, 0.4
    return TabularCMDP(next_state, reward, np.full((5, 2), 0.5), [False] * 4 + [True], [1.0, 0.0, 0.0, 0.0, 0.0])


def span_of_potential(runs: int = 200, episodes: int = 200, p: float = 0.1) -> Correction:
    """A bonus that scales with the span of phi, which is 0 here."""
    shaped = Shaped(gamble(), np.ones((2, 5)), 2)

    def broken(scale: float) -> float:
        rule = proven_rule(shaped, episodes, p, scale=scale)
        return float(np.mean([watch(shaped, episodes, seed, rule).optimism < -1e-9 for seed in range(runs)]))

    return Correction(
        "A bonus by the span of phi (not in print)",
        "share of runs in which optimism fails, phi = 1 at every state",
        broken(float(np.ptp(shaped.potential[:-1, :4]))),
        p,
        "the span of y + V*_{h+1}(s'), at most reward span + highest ceiling - lowest floor",
        broken(shaped.needed_span),
        p,
    )


def guess() -> TabularCMDP:
    """A coin: who guesses it is paid 1 and done, who does not pays 1 and guesses again."""
    next_state = [[[1, 0], [0, 1]], [[1, 1], [1, 1]]]
    reward = [[[1.0, -1.0], [-1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
    return TabularCMDP(next_state, reward, [[0.5, 0.5], [0.5, 0.5]], [False, True], [1.0, 0.0])


def many_fixed_points() -> Correction:
    """A demonstrator who sees the coin and is always wrong: do(x) may end it, which its log never shows."""
    model = guess()
    wrong = np.broadcast_to(np.array([[0.0, 1.0], [1.0, 0.0]]), (2, 2, 2))
    by_chance = np.full((2, 2, 2), 0.5)

    def apart(beta: FloatArray) -> float:
        operator = CausalBellman(model.observe(beta, "one"), 1.0)
        one, other = (_swept(operator, np.array([level, 0.0])) for level in (100.0, 200.0))
        return float(np.abs(one - other).max())

    return Correction(
        "Proposition H.2, one fixed point where P(s, x) > 0",
        "distance of the fixed points reached from two starts, a demonstrator who is always wrong",
        apart(wrong),
        0.0,
        "sets S_k from the transitions that the source shows, not from do(x), and only if they cover (here by chance)",
        apart(by_chance),
        0.0,
    )


def _swept(operator: CausalBellman, values: FloatArray, sweeps: int = 2000) -> FloatArray:
    for _ in range(sweeps):
        values = operator(values)
    return values


def below_its_image() -> Correction:
    """A value function far above the fixed point shrinks."""
    world = load_world("walking-robot")
    uniform = np.full((len(world.states), 2, 2), 0.5)
    operator = CausalBellman(world.model.observe(uniform, "uniform"), 1.0)
    high, best = np.where(operator.terminal, 0.0, 1e9), world.model.optimum().values
    return Correction(
        "Proposition H.2, V <= T V for all V",
        "the largest V - T V, V = 1e9",
        float((high - operator(high)).max()),
        0.0,
        "V* <= T V* is enough, since T is monotone",
        float((best - operator(best)).max()),
        0.0,
    )


def negative_reward_bound() -> Correction:
    """Equation 5 where every step costs."""
    world = load_world("windy-empty")
    counts = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    best, b = world.model.optimum(world.horizon).values, world.model.reward_range[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        printed = value_ceilings(counts, world.horizon, b, method="paper").values
    return Correction(
        "Equation 5, omega_h = (H - h) b",
        "the largest V* - bound in windy-empty, b = -0.1",
        float((best - printed).max()),
        0.0,
        "ending is worth 0, more than any step: max(0, .)",
        float((best - value_ceilings(counts, world.horizon, b).values).max()),
        0.0,
    )


def skipped_action() -> Correction:
    """The best action, which nobody tried."""
    model = bandit(2)
    counts = model.observe(np.broadcast_to([1.0, 0.0], (2, 1, 2)), "one")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        printed = value_ceilings(counts, 1, 1.0, method="paper").values[0, 0]
        joint = value_ceilings(counts, 1, 1.0).values[0, 0]
    best = float(model.optimum(1).values[0, 0])
    return Correction(
        "Equation 5, pairs that were not visited are skipped",
        "V* where the best of two actions was never tried, b = 1",
        best,
        float(printed),
        "every declared action counts, an untried one with the best that can follow",
        best,
        float(joint),
    )


def one_reward_missing() -> Correction:
    """A state that no log left, by the footnote."""
    horizon, b = 5, 1.0
    model = TabularCMDP([[[0]], [[1]]], [[[0.0]], [[b]]], [[1.0], [1.0]], [False, False], [1.0, 0.0])
    never_left = model.observe(np.ones((2, 1, 1)), "one", horizon=horizon)
    best = float(model.optimum(horizon).values[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        printed = value_ceilings(never_left, horizon, b, method="paper").values[0, 1]
    joint = value_ceilings(never_left, horizon, b, support="any").values[0, 1]
    return Correction(
        "Footnote on unvisited states, (H - h) b",
        "V* of a state that no log left, H = 5, b = 1, first step",
        best,
        float(printed),
        "(H - h + 1) b: a state at step h can still collect that many rewards",
        best,
        float(joint),
    )


COUNTEREXAMPLES: tuple[Callable[[], Correction], ...] = (
    wrong_index,
    skipped_action,
    negative_reward_bound,
    one_reward_missing,
    below_its_image,
    many_fixed_points,
    negative_potential,
    visits_of_pairs,
    first_visit,
    clipped_threshold,
    sum_of_roots,
    zero_gaps,
    first_visits_cost,
    span_of_potential,
)
