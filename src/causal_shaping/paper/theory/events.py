"""Watching the lemmas hold, or break: runs of a learner with every inequality of the analysis checked at every step.

- `proven_rule`: the learner that the corrected theorem is about.
- `watch`: one run; `Watched`: how much each inequality left over, at its worst.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from causal_shaping._checks import check_integer
from causal_shaping._compile import njit
from causal_shaping.data.arrays import FloatArray, LongArray, frozen
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError
from causal_shaping.learners._kernels import Learned, Step, greedy, update
from causal_shaping.learners._setting import prepare
from causal_shaping.learners.rules import Rule, resolve
from causal_shaping.paper.theory.lemmas import log_term
from causal_shaping.paper.theory.shaped import CLIPS, ROUNDING, Shaped
from causal_shaping.worlds.simulate import cumulative, pick

INEQUALITIES = ("optimism", "upper", "chosen", "recursion", "settling")
MOST_EPISODES = 10_000_000
"""More than this are not watched: their regret is kept for each."""


@dataclass(frozen=True, eq=False)
class Watched:
    """What a run showed; an inequality held if what it left over is not below 0 (up to rounding).

    Attributes:
        optimism: the least Q^k - Q* of the shaped process, over all steps of all episodes (lemma 4.2, left).
        upper: the least that its right side left over: the learned values that followed, less V*, plus 3 b_t.
        chosen: the least Q^k - Q* - Delta of suboptimal actions when they were taken (lemma on their differences).
        recursion: the least that the clipped recursion left over, for suboptimal actions that were taken again.
        value_deviation: the widest sum_i alpha_t^i (E f - f_i), f = y + V*(s'), over sqrt(H iota / t): the
            concentration lemma holds in this run for a bonus whose c times its scale is at least this.
        value_excess: the same on the other side, f above its mean.
        potential_excess: that of f = y + phi(s'), which the bound of visits rests on.
        bonus_scale: c times the scale of the bonus that the run had.
        visits: int64 [steps, states, actions].
        regret: float64 [episodes], so far.
    """

    optimism: float
    upper: float
    chosen: float
    recursion: float
    value_deviation: float
    value_excess: float
    potential_excess: float
    bonus_scale: float
    visits: LongArray
    regret: FloatArray

    @property
    def settling(self) -> float:
        """What the bonus leaves over in the concentration of y + phi(s')."""
        return self.bonus_scale - self.potential_excess

    @property
    def held(self) -> dict[str, bool]:
        """Whether each inequality held throughout."""
        return {name: getattr(self, name) >= -ROUNDING for name in INEQUALITIES}


def proven_rule(shaped: Shaped, episodes: int, p: float = 0.1, c: float = 1.0, scale: float | None = None) -> Rule:
    """Return the learner that the corrected theorem is about: clip at 0 and b_t = c B sqrt(H iota / t).

    Args:
        shaped: the problem.
        episodes: K.
        p: the chance of failure.
        c: 1 is proven; smaller ones are to see it break.
        scale: B, by default the smallest that is proven, `Shaped.needed_span`.
    """
    wide = shaped.needed_span if scale is None else scale
    return Rule(c=c, p=p, clip="zero", bonus=c * wide * math.sqrt(shaped.horizon * iota_of(shaped, episodes, p)))


def iota_of(shaped: Shaped, episodes: float, p: float) -> float:
    """Return iota = log(S A T / p) for a problem, S its states that are not terminal and T = K H."""
    if not 1 <= episodes < math.inf:
        raise ArgumentError(f"episodes is {episodes}; it must be a number from 1 up.")
    model = shaped.model
    return log_term(int((~model.terminal).sum()), len(model.actions), episodes * shaped.horizon, p)


def watch(shaped: Shaped, episodes: int, seed: int = 0, learner: str | Rule = "q-ucb-shaping") -> Watched:
    """Run a learner with a table per step for some episodes, and check every inequality as it goes.

    Args:
        shaped: the model under a potential.
        episodes: K; iota has T = K H.
        seed: the run draws as `train` does.
        learner: "q-ucb-shaping", as printed, or a rule such as `proven_rule`.

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> shaped = Shaped(world.model, world.model.optimum(world.horizon).values, world.horizon)
        >>> watch(shaped, 100, learner=proven_rule(shaped, 100)).held
        {'optimism': True, 'upper': True, 'chosen': True, 'recursion': True, 'settling': True}
    """
    rule = resolve(learner)
    other = rule.model_based or not rule.shaped or rule.cap_at_initial or rule.rate_offset is not None
    if other or rule.initial != "zero" or rule.clip not in CLIPS:
        raise ArgumentError(
            "The analysis is of a shaped table that starts at 0, with the paper's learning rate, V clipped at 0 or at "
            "the potential, and no cap on its entries."
        )
    episodes, model = check_integer("episodes", episodes, least=1), shaped.model
    if episodes > MOST_EPISODES:
        raise ArgumentError(f"episodes is {episodes:,}; at most {MOST_EPISODES:,} are watched.")
    if model.steps is not None:
        raise ArgumentError("Learners need a world whose tables are the same at each step.")
    steps, iota = episodes * shaped.horizon, iota_of(shaped, episodes, rule.p)
    phi, best = shaped.potential, shaped.values
    potential = Potential(phi[:-1], model.space)
    setting = prepare(rule, model.space, shaped.horizon, steps, potential, step_indexed=True)
    q_values = setting.constants.initial.copy()
    visits = np.zeros(q_values.shape, dtype=np.int64)
    learned = Learned(q_values, setting.initial_values.copy(), visits)
    exact = (
        best,
        shaped.best.q_values - phi[:-1, :, None],
        shaped.gaps,
        shaped.expected(best),
        shaped.expected(phi),
    )
    least, regret = _watch(
        np.random.default_rng(check_integer("seed", seed)),
        *(episodes, shaped.horizon),
        *(model.next_state, model.reward, cumulative(model.noise), model.terminal, cumulative(model.start)),
        *(learned, exact, np.zeros((4, *visits.shape)), setting.constants),
    )
    initially = float((setting.constants.initial - exact[1])[:, ~model.terminal].min())
    per_scale = math.sqrt(shaped.horizon * iota)
    return Watched(
        optimism=min(float(least[0]), initially),
        upper=float(least[1]),
        chosen=float(least[2]),
        recursion=float(least[3]),
        value_deviation=float(-least[4] / per_scale),
        value_excess=float(-least[5] / per_scale),
        potential_excess=float(-least[6] / per_scale),
        bonus_scale=setting.constants.bonus / per_scale,
        visits=frozen(visits, np.int64),
        regret=frozen(np.cumsum(regret), np.float64),
    )


@njit(nogil=True)
def _watch(  # type: ignore[no-untyped-def]
    rng, episodes, horizon, next_state, reward, noise, terminal, start, learned, exact, sums, constants
):
    """Run and check; `noise` and `start` are running sums. s, x, u: state, action, hidden noise.

    `sums` are the weighted sums of the analysis, sum_i alpha_t^i of: V^{k_i} - V*, (Q^{k_i} - Q*)(s', x'), and how far
    y + V*(s') is below and y + phi(s') above its mean. The answer is what each inequality left over at its worst.
    """
    q_values, values, visits = learned
    best, q_best, gaps, mean_best, mean_phi = exact
    phi, bonus = constants.potential, constants.bonus
    ahead, chain, below, above = sums[0], sums[1], sums[2], sums[3]
    least, regret = np.full(7, np.inf), np.zeros(episodes)
    for k in range(episodes):
        s = pick(start, rng.random())
        before_s, before_x, before_rate = -1, 0, 0.0
        for h in range(horizon):
            x = greedy(q_values[h, s], visits[h, s], False)
            difference, gap, t = q_values[h, s, x] - q_best[h, s, x], gaps[h, s, x], visits[h, s, x]
            regret[k] += gap
            if before_s >= 0:  # what followed the step before: its chain of differences goes on
                chain[h - 1, before_s, before_x] += before_rate * difference
            if gap > 0:
                least[2] = min(least[2], difference - gap)
                if t > 0:
                    width = 3.0 * bonus / math.sqrt(t)
                    clipped = width if width >= gap / (2.0 * horizon) else 0.0
                    right = clipped + (1.0 + 1.0 / horizon) * chain[h, s, x]
                    least[3] = min(least[3], right - difference)
            u = pick(noise[s], rng.random())
            after, y = next_state[s, x, u], reward[s, x, u]
            going_on = not terminal[after] and h + 1 < horizon
            following = values[h + 1, after] if going_on else 0.0
            best_after, phi_after = (best[h + 1, after], phi[h + 1, after]) if going_on else (0.0, 0.0)
            update(learned, Step(h, h + 1, s, x, y, after, not going_on), constants)
            t = visits[h, s, x]
            rate = (constants.rate_offset + 1.0) / (constants.rate_offset + t)
            ahead[h, s, x] += rate * ((following - (best_after - phi_after)) - ahead[h, s, x])
            below[h, s, x] += rate * ((mean_best[h, s, x] - y - best_after) - below[h, s, x])
            above[h, s, x] += rate * ((y + phi_after - mean_phi[h, s, x]) - above[h, s, x])
            chain[h, s, x] *= 1.0 - rate
            difference, root = q_values[h, s, x] - q_best[h, s, x], math.sqrt(t)
            least[0] = min(least[0], difference)
            least[1] = min(least[1], ahead[h, s, x] + 3.0 * bonus / root - difference)
            least[4] = min(least[4], -below[h, s, x] * root)
            least[5] = min(least[5], below[h, s, x] * root)
            least[6] = min(least[6], -above[h, s, x] * root)
            if terminal[after]:
                break
            before_s, before_x, before_rate = s, x, rate
            s = after
    return least, regret
