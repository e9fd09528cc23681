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

from causal_shaping.bounds import AssumptionWarning, value_ceilings
from causal_shaping.cmdp import TabularCMDP
from causal_shaping.data import FloatArray
from causal_shaping.learners.rules import PRESETS, resolve
from causal_shaping.theory.contraction import CausalBellman, contraction
from causal_shaping.theory.events import iota_of, proven_rule, watch
from causal_shaping.theory.lemmas import clip_lemma
from causal_shaping.theory.regret import regret_bound, visit_bound
from causal_shaping.theory.shaped import Shaped
from causal_shaping.worlds import load_world

PRINTED = PRESETS["q-ucb-shaping"]


@dataclass(frozen=True)
class Correction:
    """A statement of the form "a quantity is at most a bound", which fails, and one that holds.

    Attributes:
        statement: where it stands in the paper.
        quantity: what is bounded, in the example.
        found: what it is.
        printed: what print says it is at most: less.
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
    """Two steps: first to a state with many actions, of which the last one pays 0.5, or to one that pays 1."""
    next_state = np.full((4, actions, 1), 3)
    next_state[0], next_state[0, 1:] = 1, 2
    reward = np.zeros((4, actions, 1))
    reward[1, -1], reward[2] = 0.5, 1.0
    return TabularCMDP(next_state, reward, np.ones((4, 1)), [False, False, False, True], [1.0, 0.0, 0.0, 0.0])


def visits_of_pairs() -> Correction:
    """A pair that is in Sub_Delta because of the last step is visited often at the first."""
    model, c, episodes = shortcut(), 0.01, 200
    shaped = Shaped(model, np.full((2, 4), 2.0), 2)
    assert shaped.pseudo_suboptimal()[0, 0]
    iota = iota_of(shaped, episodes, PRINTED.p)
    scale = c * float(shaped.potential.max())
    visits = watch(shaped, episodes, learner=resolve(PRINTED, c=c)).visits
    bound = visit_bound(scale, 2, iota, shaped.pair_gaps[0, 0], printed=True)
    true = visit_bound(scale, 2, iota, shaped.margins("potential"))
    return Correction(
        "Definition 4.3 and lemma 4.4, visits to Sub_Delta",
        "visits at the first step of a pair in Sub_Delta, without noise, c = 0.01",
        float(visits[0, 0, 0]),
        float(bound),
        "a margin at that step, y + 2 E phi_{h+1} + margin <= V*_h, which it lacks here (visits over bound of others)",
        float((visits / true).max()),
        1.0,
    )


def first_visit() -> Correction:
    """An action of which print says that it is never tried."""
    model = bandit(2)
    shaped = Shaped(model, None, 1)
    visits = watch(shaped, 50).visits
    return Correction(
        "Lemma 4.4, the bound itself",
        "visits of a pair in Sub_Delta where phi_m = 0",
        float(visits[0, 0, 0]),
        float(visit_bound(0.0, 1, 1.0, shaped.pair_gaps[0, 0], printed=True)),
        "floor(9 c^2 phi_m^2 H iota / margin^2) + 1, since every entry starts at 0",
        float(visits[0, 0, 0]),
        float(visit_bound(0.0, 1, 1.0, shaped.margins()[0, 0, 0])),
    )


def bandit(actions: int) -> TabularCMDP:
    """One step: every action costs 1 but the last, which is free."""
    reward = np.zeros((2, actions, 1))
    reward[0, :-1] = -1.0
    return TabularCMDP(np.ones((2, actions, 1), dtype=int), reward, np.ones((2, 1)), [False, True], [1.0, 0.0])


def first_visits_cost() -> Correction:
    """The regret of trying everything once."""
    shaped, episodes = Shaped(bandit(10), None, 1), 50
    regret = float(watch(shaped, episodes).regret[-1])
    p = 1 / (2 * episodes)
    return Correction(
        "Theorem 4.5, what it leaves out",
        "regret of ten actions, of which nine cost 1, with phi = 0",
        regret,
        2 * p * episodes,  # phi_m = 0: both sums are 0
        "first visits cost phi - Q* each; optimal actions have bonuses, too (their Delta of 0 makes the sum infinite)",
        regret,
        regret_bound(shaped, episodes).total,
    )


def zero_gaps() -> Correction:
    """The printed sum over all pairs, those that are optimal included."""
    world = load_world("lavacross-easy")
    shaped, _ = Shaped(world.model, None, world.horizon).nonnegative()
    episodes = 1e20
    everything = float(np.where(shaped.gaps.min(axis=0) > 0, 0.0, math.inf).max())
    return Correction(
        "Theorem 4.5, Delta(s, x) = min_h Delta_h(s, x)",
        "its bound over the trivial one, lavacross-easy, 1e20 episodes",
        everything,
        1.0,
        "sums over positive gaps; optimal actions count with the smallest gap of all",
        regret_bound(shaped, episodes).total / shaped.worst_regret / episodes,
        1.0,
    )


def negative_potential() -> Correction:
    """The printed clip under the best potential that there is, where rewards are costs."""
    model = TabularCMDP([[[0]], [[1]]], [[[-1.0]], [[0.0]]], [[1.0], [1.0]], [False, True], [1.0, 0.0])
    shaped = Shaped(model, model.optimum(3).values, 3)
    return Correction(
        "Lemma 4.2, Q^k >= Q*",
        "Q* - Q^k with phi = V* < 0, without noise",
        -watch(shaped, 20).optimism,
        0.0,
        "clip V at 0: the shaped optimum is V* - phi <= 0, whatever the sign of phi",
        -watch(shaped, 20, learner=proven_rule(shaped, 20)).optimism,
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
        "Bonus for any sign: the span of phi is not enough",
        "share of runs in which optimism fails, phi = 1 at every state",
        broken(float(np.ptp(shaped.potential[:-1, :4]))),
        p,
        "the span of y + V*_{h+1}(s'), at most reward span + highest ceiling - lowest floor",
        broken(shaped.needed_span),
        p,
    )


def constant_fixed_points() -> Correction:
    """A source that never shows what its actions can do: the operator has more than one fixed point."""
    world = load_world("walking-robot")
    operator = CausalBellman(world.model.observe(world.demonstrators["incompetent"], "incompetent"), 1.0)
    assert contraction(operator, world.model.transitions()).applies  # with the sets of the appendix
    starts = [np.full(len(world.states), level) for level in (100.0, 200.0)]
    ends = [_swept(operator, start) for start in starts]
    return Correction(
        "Proposition H.2, one fixed point where P(s, x) > 0",
        "distance of the limits from two starts, the incompetent robot's log",
        float(np.abs(ends[0] - ends[1]).max()),
        0.0,
        "the sets S_k need the transitions that the source shows, T~, not those under do(x); they may fail to cover",
        float(contraction(operator).applies),
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
        "ending is worth 0: max(0, .), as the joint ceiling has it",
        float((best - value_ceilings(counts, world.horizon, b).values).max()),
        0.0,
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
    negative_reward_bound,
    one_reward_missing,
    below_its_image,
    constant_fixed_points,
    negative_potential,
    span_of_potential,
    visits_of_pairs,
    first_visit,
    clipped_threshold,
    sum_of_roots,
    zero_gaps,
    first_visits_cost,
)
