"""Statements of the paper that are false as printed, each with a counterexample that runs and a corrected statement.

- `corrections`: all of them, computed.
- `Correction`: a quantity and its printed bound, which fails; and the same for the statement that is true.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

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


class Correction(NamedTuple):
    """A printed statement of the form "a quantity is at most a bound", which fails, and one that holds.

    Attributes:
        statement: its place in the paper.
        quantity: the quantity in the example.
        found: the value of the quantity, and its printed bound, which is smaller.
        instead: the corrected statement.
        true_found: the value of the corrected statement's quantity, in the same example, and its bound.
    """

    statement: str
    quantity: str
    found: tuple[float, float]
    instead: str
    true_found: tuple[float, float]


def without_noise(after: npt.ArrayLike, reward: npt.ArrayLike, ends: bool = True) -> TabularCMDP:
    """Return a model in which an action has one outcome; it starts in the first state and may end in the last.

    Args:
        after: int [states, actions], the next states.
        reward: float [states, actions], the rewards.
        ends: whether the last state is terminal.
    """
    after = np.asarray(after)
    first = np.arange(len(after)) == 0
    terminal = ends & (np.arange(len(after)) == len(after) - 1)
    shape = (*after.shape, 1)
    return TabularCMDP(after.reshape(shape), np.reshape(reward, shape), np.ones((len(after), 1)), terminal, 1.0 * first)


def bandit(actions: int) -> TabularCMDP:
    """Return a model of one step in which only the last action pays, 1."""
    return without_noise([[1] * actions] * 2, [[0.0] * (actions - 1) + [1.0], [0.0] * actions])


def published_and_joint(counts: Any, horizon: int, reward_max: float, **options: Any) -> tuple[FloatArray, FloatArray]:
    """Return the ceilings of the paper and the joint ones: float64 [steps, states] each."""
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        published = value_ceilings(counts, horizon, reward_max, method="paper").values
        return published, value_ceilings(counts, horizon, reward_max, **options).values


def corrections() -> Iterator[Correction]:
    """Compute every correction."""
    yield from _wrong_bounds()
    yield from _wrong_contraction()
    yield from _wrong_lemmas()
    yield from _wrong_theorem()


def _wrong_bounds() -> Iterator[Correction]:
    """Proposition 2.2, and equation 5 with its footnote."""
    # The first action leads to a state that pays 1, the second to one that pays nothing but has the potential.
    model = without_noise([[1, 2], [3, 3], [3, 3], [3, 3]], [[0, 0], [1, 1], [0, 0], [0, 0]])
    shaped = Shaped(model, [[0, 0, 10, 0], [0, 0, 0, 0]], 2)
    chosen = [shaped.shaped_model(printed=printed).optimum(2).greedy() for printed in (True, False)]
    losses = [float((model.optimum(2).values - model.evaluate(one, 2).values)[0, 0]) for one in chosen]
    yield Correction(
        "Proposition 2.2, shaping keeps the optimal policies",
        "loss of a policy that is optimal after shaping",
        (losses[0], 0.0),
        "r + phi_{h+1}(s') - phi_h(s), with phi_{H+1} = 0 in place of phi_H = 0",
        (losses[1], 0.0),
    )
    counts = bandit(2).observe(np.broadcast_to([1.0, 0.0], (2, 1, 2)), "one")
    published, joint = published_and_joint(counts, 1, 1.0)
    yield Correction(
        "Equation 5, pairs that were never visited are skipped",
        "V* where the best of two actions was never tried, b = 1",
        (1.0, published[0, 0]),
        "every declared action counts, an untried one with its best possible outcome",
        (1.0, joint[0, 0]),
    )
    world = load_world("windy-empty")  # every step costs
    every = [world.model.observe(beta, name) for name, beta in world.demonstrators.items()]
    published, joint = published_and_joint(every, world.horizon, world.model.reward_range[1])
    best = world.model.optimum(world.horizon).values
    yield Correction(
        "Equation 5, omega_h = (H - h) b",
        "the largest V* - bound in windy-empty, b = -0.1",
        (float((best - published).max()), 0.0),
        "termination is worth 0, more than any step: max(0, .)",
        (float((best - joint).max()), 0.0),
    )
    model = without_noise([[0], [1]], [[0.0], [1.0]], ends=False)  # the second state is never reached, and pays 1
    counts = model.observe(np.ones((2, 1, 1)), "one", horizon=5)
    published, joint = published_and_joint(counts, 5, 1.0, support="any")
    paid = float(model.optimum(5).values[0, 1])
    yield Correction(
        "Footnote on unvisited states, (H - h) b",
        "V* of a state in which no source acted, H = 5, b = 1, first step",
        (paid, published[0, 1]),
        "(H - h + 1) b: a state at step h can still collect that many rewards",
        (paid, joint[0, 1]),
    )


def _wrong_contraction() -> Iterator[Correction]:
    """Proposition H.2."""
    robot = load_world("walking-robot")
    operator = CausalBellman(robot.model.observe(np.full((len(robot.states), 2, 2), 0.5), "uniform"), 1.0)
    high, best = np.where(operator.terminal, 0.0, 1e9), robot.model.optimum().values
    yield Correction(
        "Proposition H.2, V <= T V for all V",
        "the largest V - T V, for V = 1e9",
        (float((high - operator(high)).max()), 0.0),
        "V* <= T V* is enough, since T is monotone",
        (float((best - operator(best)).max()), 0.0),
    )
    # A right guess of a coin ends the episode, which the logs of a demonstrator who is always wrong never show.
    reward = [[[1.0, -1.0], [-1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]
    guess = TabularCMDP([[[1, 0], [0, 1]], [[1, 1], [1, 1]]], reward, np.full((2, 2), 0.5), [False, True], [1.0, 0.0])
    wrong, at_random = np.broadcast_to([[0.0, 1.0], [1.0, 0.0]], (2, 2, 2)), np.full((2, 2, 2), 0.5)

    def distance(beta: FloatArray) -> float:
        operator, limits = CausalBellman(guess.observe(beta, "one"), 1.0), []
        for values in (np.array([100.0, 0.0]), np.array([200.0, 0.0])):
            for _ in range(2000):
                values = operator(values)
            limits.append(values)
        return float(np.abs(limits[0] - limits[1]).max())

    yield Correction(
        "Proposition H.2, one fixed point where P(s, x) > 0",
        "distance between the fixed points reached from two starts, for a demonstrator who is always wrong",
        (distance(wrong), 0.0),
        "sets S_k from what the source shows, not from do(x), if they cover all states (shown: acting at random)",
        (distance(at_random), 0.0),
    )


def _everything_once() -> tuple[Shaped, int, float]:
    """Return ten actions, of which one pays, under V*; the episodes of a run; and the c of its bonus."""
    return Shaped(bandit(10), [[1.0, 0.0]], 1), 50, 0.001  # without noise every lemma holds with any bonus


def _wrong_lemmas() -> Iterator[Correction]:
    """Lemmas 4.2, 4.4 and G.2."""
    model, horizon, episodes = without_noise([[0]], [[-1.0]], ends=False), 3, 2_000
    shaped = Shaped(model, model.optimum(horizon).values, horizon)  # phi_m^2 = 1
    printed = resolve(PRINTED, bonus=PRINTED.c * math.sqrt(horizon * shaped.iota(episodes, PRINTED.p)))
    yield Correction(
        "Lemma 4.2, Q^k >= Q*",
        "Q* - Q^k with phi = V* < 0, without noise",
        (-watch(shaped, episodes, learner=printed).optimism, 0.0),
        "Q* - phi in place of Q*, and V clipped at 0: the shaped optimum is at most 0, whatever the sign of phi",
        (-watch(shaped, episodes, learner=proven_rule(shaped, episodes)).optimism, 0.0),
    )
    # First to a state with 20 actions of which one pays 0.5, or to one that pays 0.8: rewards from 0 to 1, phi = H.
    model = without_noise(
        [[1] + [2] * 19, *([[3] * 20] * 3)], [[0.0] + [0.2] * 19, [0.0] * 19 + [0.5], [0.8] * 20, [0.0] * 20]
    )
    shaped, episodes, c = Shaped(model, np.full((2, 4), 2.0), 2), 200, 0.005
    visits, iota = watch(shaped, episodes, learner=resolve(PRINTED, c=c)).visits, shaped.iota(episodes, PRINTED.p)
    smallest = shaped.gaps.min(axis=0)[0, 0]  # over all steps, as printed
    yield Correction(
        "Definition 4.3 and lemma 4.4, visits to Sub_Delta",
        f"visits at the first step of a pair in Sub_Delta, without noise, c = {c:g}",
        (_visits(shaped, visits), float(visit_bound(2 * c, 2, iota, smallest, printed=True))),
        "a margin at that step, y + 2 E phi_{h+1} + margin <= V*_h, which it lacks (shown: visits / bound of others)",
        (float((visits / visit_bound(2 * c, 2, iota, shaped.margins("potential"))).max()), 1.0),
    )
    shaped, episodes, c = _everything_once()
    visits, iota = watch(shaped, episodes, learner=resolve(PRINTED, c=c)).visits, shaped.iota(episodes, PRINTED.p)
    yield Correction(
        "Lemma 4.4, the bound itself",
        f"visits of a pair in Sub_Delta, without noise, c = {c:g}",
        (_visits(shaped, visits), float(visit_bound(c, 1, iota, shaped.pair_gaps[0, 0], printed=True))),
        "floor(9 B^2 H iota / margin^2) + 1, since every entry starts at 0",
        (_visits(shaped, visits), float(visit_bound(c, 1, iota, shaped.margins("potential")[0, 0, 0]))),
    )
    yield Correction(
        "Lemma G.2, the clip function",
        "a + b for a = 1, b = 3, c = 4, x = 0.1",
        (4.0, 4.0 + float(clip_lemma(1, 3, 4, 0.1, printed=True))),
        "the threshold is x c / 2, not a c / 2; its use with x = 1 / H is right",
        (4.0, 4.0 + float(clip_lemma(1, 3, 4, 0.1))),
    )


def _visits(shaped: Shaped, visits: npt.NDArray[np.int64]) -> float:
    """Return the visits of the first action at the first step, if it is in Sub_Delta as printed."""
    return float(visits[0, 0, 0]) if shaped.pseudo_suboptimal()[0, 0] else 0.0


def _wrong_theorem() -> Iterator[Correction]:
    """Theorem 4.5, H.8 in the appendix, and a bonus that one might think of."""
    total = float((1 / np.sqrt(np.arange(1, 101))).sum())
    yield Correction(
        "Theorem 4.5, its first constant (H.8)",
        "sum of 1 / sqrt(i) up to 100",
        (total, 10.0),
        "2 sqrt(N), so that 12 becomes 24",
        (total, 20.0),
    )
    world = load_world("lavacross-easy")
    shaped, _ = Shaped(world.model, None, world.horizon).nonnegative()
    gaps = shaped.gaps.min(axis=0)[np.isfinite(shaped.pair_gaps)]  # of pairs that are suboptimal at some step
    optimal_once = int((gaps == 0).sum())
    yield Correction(
        "Theorem 4.5, Delta(s, x) = min_h Delta_h(s, x)",
        f"bound over the trivial one, lavacross-easy, 1e20 episodes ({optimal_once} of {len(gaps)} have Delta = 0)",
        (math.inf if optimal_once else 0.0, 1.0),
        "sums over positive gaps, step by step; optimal actions count with the smallest gap of all",
        (regret_bound(shaped, 1e20).total / shaped.worst_regret / 1e20, 1.0),
    )
    shaped, episodes, c = _everything_once()
    regret = float(watch(shaped, episodes, learner=resolve(PRINTED, c=c)).regret[-1])
    yield Correction(
        "Theorem H.8, terms that it omits",
        f"regret of ten actions, of which one pays 1 and the others 0, phi = V*, c = {c:g}",
        (regret, printed_regret_bound(shaped, episodes, c=c).total),
        "first visits cost phi - Q* each, and optimal actions have bonuses as well",
        (regret, regret_bound(shaped, episodes, scale=c, clip="potential").total),
    )
    # A gamble between states worth 1 and 0, or a state worth 0.4: a potential of 1 is a ceiling, and has no span.
    after, reward = np.full((5, 2, 2), 4), np.zeros((5, 2, 2))
    after[0], reward[1], reward[3] = [[1, 2], [3, 3]], 1.0, 0.4
    gamble = TabularCMDP(after, reward, np.full((5, 2), 0.5), [False] * 4 + [True], np.eye(5)[0])
    shaped, p = Shaped(gamble, np.ones((2, 5)), 2), 0.1

    def broken(scale: float, runs: Sequence[int] = range(200)) -> float:
        rule = proven_rule(shaped, 200, p=p, scale=scale)
        return float(np.mean([not watch(shaped, 200, seed=seed, learner=rule).held["optimism"] for seed in runs]))

    yield Correction(
        "A bonus that scales with the span of phi (not in the paper)",
        "share of runs in which optimism fails, phi = 1 at every state",
        (broken(0.0), p),
        "the span of y + V*_{h+1}(s'), which is at most reward span + highest ceiling - lowest floor",
        (broken(shaped.needed_span), p),
    )
