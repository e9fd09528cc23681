"""Bounds on visits and on regret, as printed and corrected, with their constants.

- `visit_bound`: the largest number of visits to a settled (h, s, x).
- `printed_regret_bound`: the last line of the main theorem, with the constants 12 and 72 as printed.
- `regret_bound`: a bound with a proof, for a potential of any sign; given the visits of a run, a certificate for it.
- `useful_from`: the number of episodes from which on a bound is not vacuous.
- `q_ucb`: the problem in which Q-UCB Shaping is Q-UCB, so that the same function bounds its regret.

The proofs, and the errors in the printed ones, are in `docs/theory.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from causal_shaping.data.arrays import FloatArray
from studies.paper.theory.lemmas import clipped_sum
from studies.paper.theory.shaped import ROUNDING, Shaped


@dataclass(frozen=True)
class RegretBound:
    """A bound on the expected regret after K episodes, as a sum of parts.

    Attributes:
        settled: the bonuses of suboptimal (h, s, x) that the potential settles; as printed, of pairs in Sub_Delta.
        unsettled: the bonuses of the other suboptimal ones.
        optimal: the bonuses of optimal (h, s, x); the printed theorem omits them.
        first: the cost of first visits, the error of the potential; the printed theorem omits it.
        failure: the cost of the probability of failure.
        trivial: K times the largest regret of an episode, which bounds the regret without any theorem.
    """

    settled: float
    unsettled: float
    optimal: float
    first: float
    failure: float
    trivial: float

    @property
    def total(self) -> float:
        """The bound: the sum of its parts."""
        return self.settled + self.unsettled + self.optimal + self.first + self.failure

    @property
    def vacuous(self) -> bool:
        """Whether the trivial bound is at least as good."""
        return self.total != 0 and not self.total < self.trivial

    def unscaled(self, scale: float) -> RegretBound:
        """Return the bound in units of the world's reward, if it is for rewards that were multiplied by a scale."""
        return RegretBound(*(part / scale for part in astuple(self)))


def visit_bound(scale: float, horizon: int, iota: float, margin: npt.ArrayLike, *, printed: bool = False) -> FloatArray:
    """Return the largest number of visits to an action with a margin, if b_t = scale sqrt(H iota / t); else inf.

    floor(9 scale^2 H iota / margin^2) + 1: as long as the action is taken, margin <= 3 b_t after its t earlier visits,
    and the first visit is free.

    Args:
        scale: the scale of the bonus; c phi_m as printed.
        horizon: H.
        iota: log(S A T / p), see `Shaped.iota`.
        margin: see `Shaped.margins`; Delta(s, x) as printed.
        printed: use 16 scale^2 H iota / margin^2, as in lemma 4.4, which lacks the first visit.

    Examples:
        >>> visit_bound(0.0, 20, 10.0, 0.5).item(), visit_bound(1.0, 20, 10.0, 2.0).item()
        (1.0, 451.0)
    """
    margin = np.asarray(margin, dtype=np.float64)
    quotient = scale**2 * horizon * iota / np.where(margin > 0, margin, 1.0) ** 2
    most = 16.0 * quotient if printed else np.floor(9.0 * quotient + ROUNDING) + 1.0
    return np.where(margin > 0, most, np.inf)


def printed_regret_bound(shaped: Shaped, episodes: float, *, c: float = 4.0) -> RegretBound:
    """Return the last line but one of the main theorem's proof, with its constants.

        sum over Sub_Delta of   12 c^2 e^2 phi_m^2 H^3 iota / Delta(s, x)
        + sum over the others of  72 c^2 e^2 phi_m^2 H^4 iota / Delta(s, x)  +  2 p T H

    Interpreted charitably: pairs that are optimal at every step, for which Delta = 0 and the sum is infinite, are left
    out, and Delta is the smallest positive gap. Rewards must be from 0 to 1 (`Shaped.nonnegative`). The probability of
    failure p is 1 / (2 T), as in the proof.

    Args:
        shaped: the problem.
        episodes: K.
        c: the constant of the bonus.
    """
    steps = episodes * shaped.horizon
    chance = 1.0 / (2.0 * max(steps, 1.0))
    lowest = min(shaped.model.reward_range[0], shaped.potential.min())
    assert lowest >= -ROUNDING, "the printed theorem is for rewards and potentials that are never negative"
    highest, H = float(shaped.potential.max()), shaped.horizon
    unit = (c * math.e * highest) ** 2 * shaped.iota(episodes, chance) * H**3
    with np.errstate(divide="ignore"):
        per_pair = 1.0 / shaped.pair_gaps  # 0 for pairs without a gap
    inside = shaped.pseudo_suboptimal()
    return RegretBound(
        settled=12.0 * unit * float(per_pair[inside].sum()),
        unsettled=72.0 * H * unit * float(per_pair[~inside].sum()),
        optimal=0.0,
        first=0.0,
        failure=2.0 * chance * steps * H,
        trivial=episodes * shaped.worst_regret,
    )


def regret_bound(
    shaped: Shaped,
    episodes: float,
    *,
    p: float | None = None,
    scale: float | None = None,
    clip: str = "zero",
    visits: npt.ArrayLike | None = None,
) -> RegretBound:
    """Return a bound on the regret of Q-UCB Shaping with b_t = scale sqrt(H iota / t), for a potential of any sign.

    With probability 1 - 3 p the regret after K episodes is at most

        2 sum_h G_h sum_{s,x} ( phi_h(s) - Q*_h(s, x) + sum_{n < N_h(s, x)} clip[3 b_n | theta_h(s, x)] ),

    G_h = sum_{j < h} (1 + 1/H)^{2j} for h = 1 .. H; theta is Delta_h(s, x) / (2 H), and where that gap is 0,
    Delta_min / (2 E) with E = sum_{j < H} (1 + 1/H)^j. N_h(s, x) is at most K, and at most `visit_bound` where the
    potential settles it. In expectation, failure costs 3 p times the trivial bound.

    Args:
        shaped: the problem; its potential must be a ceiling.
        episodes: K.
        p: the probability of failure; 1 / (3 T) by default.
        scale: the scale of the bonus, at least `Shaped.needed_span`, which is its default.
        clip: the clip of V, "zero", or "potential" as printed, which needs a potential that is never negative.
        visits: int64 [steps, states, actions], the visits of a run: the bound is then on its regret, if the event held.
    """
    H, model, phi = shaped.horizon, shaped.model, shaped.potential
    margins = shaped.margins(clip)
    needed = shaped.needed_span if clip == "zero" else max(shaped.span(shaped.values), shaped.span(2 * phi))
    wide = needed if scale is None else float(scale)
    assert shaped.optimism().holds.all(), "the theorem needs a ceiling"
    assert visits is not None or wide >= needed - ROUNDING, "optimism is not proven for so small a bonus"
    assert clip == "zero" or phi.min() >= -ROUNDING, "the printed clip needs a potential that is never negative"
    chance = 1.0 / (3.0 * max(episodes, 1.0) * H) if p is None else p
    iota = shaped.iota(episodes, chance)
    alive = np.broadcast_to(~model.terminal[None, :, None], shaped.gaps.shape)
    growth = 1.0 + 1.0 / H
    weight = 2.0 * np.cumsum(growth ** (2.0 * np.arange(H)))[:, None, None]
    suboptimal = shaped.gaps > 0
    smallest = shaped.smallest_gap if math.isfinite(shaped.smallest_gap) else 0.0
    threshold = np.where(suboptimal, shaped.gaps / (2 * H), smallest / (2 * float((growth ** np.arange(H)).sum())))
    settled = suboptimal & (margins > 0)
    if visits is None:
        most = np.where(settled, visit_bound(wide, H, iota, margins), np.inf)
        most, visited = np.minimum(most, episodes) - 1.0, alive
    else:
        taken = np.asarray(visits)
        most, visited = np.maximum(taken - 1.0, 0.0), alive & (taken > 0)
    bonuses = np.where(alive, weight * clipped_sum(3.0 * wide * math.sqrt(H * iota), threshold, most), 0.0)
    first = np.where(visited, weight * (phi[:-1, :, None] - shaped.best.q_values), 0.0)
    trivial = episodes * shaped.worst_regret
    return RegretBound(
        settled=float(bonuses[settled].sum()),
        unsettled=float(bonuses[suboptimal & ~settled].sum()),
        optimal=float(bonuses[~suboptimal].sum()) if smallest > 0 else 0.0,
        first=float(first.sum()) if smallest > 0 else 0.0,
        failure=3.0 * chance * trivial if visits is None else 0.0,
        trivial=trivial,
    )


def useful_from(bound: Callable[[float], RegretBound], most: float = 1e30) -> float:
    """Return the number of episodes from which on a bound is not vacuous, to two digits.

    Args:
        bound: the bound after a number of episodes, such as `lambda k: regret_bound(shaped, k)`.
        most: the largest number of episodes to try; inf if the bound is still vacuous there.
    """
    power = next((n for n in range(round(math.log10(most)) + 1) if not bound(10.0**n).vacuous), None)
    if power is None:
        return math.inf
    low, high = 10.0 ** (power - 1), 10.0**power
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bound(middle).vacuous else (low, middle)
    return high


def q_ucb(shaped: Shaped) -> Shaped:
    """Return the problem in which Q-UCB Shaping is Q-UCB: the potential is H b at every step, b the largest reward.

    Q-UCB starts at H, clips at H and adds c sqrt(H^3 iota / t), for rewards from 0 to 1. Shaped by H, that is a table
    that starts at 0, a clip at 0, and a bonus of scale c H: the same regret bound applies, with nothing settled.
    """
    b = max(shaped.model.reward_range[1], 0.0)
    return Shaped(
        shaped.model, np.full((shaped.horizon, len(shaped.model.terminal)), shaped.horizon * b), shaped.horizon
    )
