"""Runs of a learner in which every inequality of the analysis is checked at every step.

- `proven_rule`: the learner of the corrected theorem; `PRINTED`: the paper's.
- `watch`: one run; `Watched`: the least slack of each inequality in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.data.arrays import FloatArray, LongArray, frozen
from causal_shaping.data.potential import Potential
from causal_shaping.learners._kernels import Learned, Step, update
from causal_shaping.learners._setting import prepare
from causal_shaping.learners.rules import PRESETS, Rule, resolve
from causal_shaping.worlds.simulate import pick, tables_of
from studies.paper.theory.shaped import ROUNDING, Shaped

PRINTED = PRESETS["q-ucb-shaping"]
"""The learner as the paper prints it."""

INEQUALITIES = ("optimism", "upper", "chosen", "recursion", "settling")


@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """The least slack of each inequality in a run; it held throughout if that is not negative (up to rounding).

    Attributes:
        optimism: the smallest Q^k - Q* of the shaped process, over all steps of all episodes (lemma 4.2, left side).
        upper: the least slack of the right side: learned values of the next states, less V*, plus 3 b_t.
        chosen: the smallest Q^k - Q* - Delta of suboptimal actions when they were taken (lemma on their differences).
        recursion: the least slack of the clipped recursion, for suboptimal actions that were taken again.
        value_deviation: the largest sum_i alpha_t^i (E f - f_i), f = y + V*(s'), over sqrt(H iota / t): the
            concentration lemma holds in this run if c times the scale of the bonus is at least this.
        value_excess: the same on the other side, f above its mean.
        potential_excess: the same for f = y + phi(s'), which the bound on visits needs.
        bonus_scale: c times the scale of the bonus in the run.
        visits: int64 [steps, states, actions], how often each action was taken.
        regret: float64 [episodes], cumulative.
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
        """The slack of the bonus in the concentration of y + phi(s')."""
        return self.bonus_scale - self.potential_excess

    @property
    def held(self) -> dict[str, bool]:
        """Whether each inequality held throughout."""
        return {name: getattr(self, name) >= -ROUNDING for name in INEQUALITIES}


def proven_rule(shaped: Shaped, episodes: int, *, p: float = 0.1, c: float = 1.0, scale: float | None = None) -> Rule:
    """Return the learner of the corrected theorem: clip at 0 and b_t = c B sqrt(H iota / t).

    Args:
        shaped: the problem.
        episodes: K.
        p: the probability of failure.
        c: 1 is proven; smaller values show when optimism breaks.
        scale: B, by default the smallest that is proven, `Shaped.needed_span`.
    """
    wide = shaped.needed_span if scale is None else scale
    return Rule(c=c, p=p, clip="zero", bonus=c * wide * math.sqrt(shaped.horizon * shaped.iota(episodes, p)))


def watch(shaped: Shaped, episodes: int, *, seed: int = 0, learner: str | Rule = PRINTED) -> Watched:
    """Run a learner with a table per step, and check every inequality at each step.

    Args:
        shaped: the model under a potential.
        episodes: K; iota has T = K H.
        seed: the run draws random numbers as `train` does.
        learner: by default the printed one, "q-ucb-shaping"; or a rule such as `proven_rule`, of a shaped table that
            starts at 0, with V clipped at 0 or at the potential: the analysis is of these.

    Examples:
        >>> from causal_shaping import load_world
        >>> world = load_world("lavacross-easy")
        >>> shaped = Shaped(world.model, world.model.optimum(world.horizon).values, world.horizon)
        >>> watch(shaped, 100, learner=proven_rule(shaped, 100)).held
        {'optimism': True, 'upper': True, 'chosen': True, 'recursion': True, 'settling': True}
    """
    rule = resolve(learner)
    model, phi, values, H = shaped.model, shaped.potential, shaped.values, shaped.horizon
    setting = prepare(rule, model.space, H, episodes * H, Potential(phi[:-1], model.space), step_indexed=True)
    q_values = setting.initial.copy()
    visits = np.zeros(q_values.shape, dtype=np.int64)
    learned = Learned(q_values, setting.initial_values.copy(), visits, q_values.argmax(axis=-1))
    q_best = shaped.best.q_values - phi[:-1, :, None]
    exact = (values, q_best, shaped.gaps, shaped.expected(values), shaped.expected(phi))
    rng = np.random.default_rng(seed)
    least, regret = _watch(rng, episodes, H, tables_of(model), learned, exact, setting.constants)
    per_scale = math.sqrt(H * shaped.iota(episodes, rule.p))
    return Watched(
        optimism=min(float(least[0]), float((setting.initial - q_best)[:, ~model.terminal].min())),
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
def _watch(rng, episodes, horizon, model, learned, exact, constants):  # type: ignore[no-untyped-def]
    """Run and check; return the least slack of each inequality, and the regret of each episode.

    s, x, u, y: state, action, hidden noise, reward. `exact`: V*, Q* - phi, the gaps, and the means of y + V*(s') and
    y + phi(s'), by step. Weighted sums of the analysis, sum_i alpha_t^i of: `ahead`,
    V^{k_i} - V*; `chain`, (Q^{k_i} - Q*)(s', x'); `below` and `above`, how far y + V*(s') is below and y + phi(s')
    above its mean.
    """
    q_values, values, visits, greedy = learned
    best, q_best, gaps, mean_best, mean_phi = exact
    phi, clip, discount, bonus, _ = constants
    terminal = model.terminal
    ahead, chain = np.zeros(visits.shape), np.zeros(visits.shape)
    below, above = np.zeros(visits.shape), np.zeros(visits.shape)
    least, regret = np.full(7, np.inf), np.zeros(episodes)
    for k in range(episodes):
        s = pick(model.start, rng.random())
        before_s, before_x, before_rate = -1, 0, 0.0
        for h in range(horizon):
            x = greedy[h, s]
            difference, gap, t = q_values[h, s, x] - q_best[h, s, x], gaps[h, s, x], visits[h, s, x]
            regret[k] += gap
            if before_s >= 0:  # this difference belongs to the chain of the previous step
                chain[h - 1, before_s, before_x] += before_rate * difference
            if gap > 0:
                least[2] = min(least[2], difference - gap)
                if t > 0:
                    width = 3.0 * bonus / math.sqrt(t)
                    clipped = width if width >= gap / (2.0 * horizon) else 0.0
                    right = clipped + (1.0 + 1.0 / horizon) * chain[h, s, x]
                    least[3] = min(least[3], right - difference)
            u = pick(model.noise[s], rng.random())
            after, y = model.next_state[s, x, u], model.reward[s, x, u]
            going_on = not terminal[after] and h + 1 < horizon
            following = values[h + 1, after] if going_on else 0.0
            best_after, phi_after = (best[h + 1, after], phi[h + 1, after]) if going_on else (0.0, 0.0)
            step = Step(h, h + 1, s, x, y, after, not going_on, h, not going_on, False)
            update(q_values, values, visits, greedy, phi, clip, discount, bonus, horizon, step)
            t = visits[h, s, x]
            rate = (horizon + 1.0) / (horizon + t)
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
