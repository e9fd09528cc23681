"""Ceilings and floors of the optimal interventional value, from counts.

- `value_ceilings`, `value_floors`: the two bounds.
- `provably_suboptimal`: what follows from both.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from causal_shaping._checks import check_discount, check_integer
from causal_shaping.bounds._joint import Progress, joint_bounds
from causal_shaping.bounds._masses import source_confounding
from causal_shaping.bounds._published import paper_ceilings
from causal_shaping.bounds._sweeps import Solution
from causal_shaping.bounds.results import Bounds, Ceilings, Floors
from causal_shaping.bounds.support import Support, sources_without_terminations
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.errors import ArgumentError, AssumptionWarning, ContradictionError, DataError

METHODS = ("joint", "paper")

BEYOND_ROUNDING = 1e-9
"""How far a ceiling must lie below a floor, relative to the larger, before anything is concluded from it."""

Kind = TypeVar("Kind", bound=Bounds)


def value_ceilings(
    counts: Counts | Sequence[Counts],
    horizon: int,
    reward_max: float,
    method: str = "joint",
    support: Support = "observed",
    confounding: float | Mapping[str, float] = math.inf,
    confidence: float | None = None,
    discount: float = 1.0,
    stationary: bool = False,
    *,
    min_visits: float = 0.0,
    value_max: float | None = None,
    progress: Progress = lambda done, total: None,
) -> Ceilings:
    """Return upper bounds of the optimal interventional value, for every step, state and action.

    Fix a step, a state s and an action x. Source i proves a mass L_i(o) of each outcome o under do(x) (see
    `causal_shaping.bounds._masses`), and all sources watch the same world, so

        Qbar_h(s, x) = w - sum over o of  max_i L_i(o) * (w - r(o) - discount * Vbar_{h+1}(s'(o)))
        Vbar_h(s)    = max over all declared x of Qbar_h(s, x),

    where w is the best allowed outcome: what mass that nobody has proven could do. `method="paper"` is equation (5) and
    algorithm 2 of the paper instead, one source at a time with the minimum at the end; see
    `causal_shaping.bounds._published`. It ignores `support`.

    **Finite samples.** With `confidence`, masses are replaced by confidence limits that all hold at once: a union bound
    over every source x state x action x outcome (x step), seen or not, each limit with its share (1 - confidence) / K.
    The number K and what it counts: `bounds._masses.sampling_of`. Exact: counts by step (binomial limits,
    for a number of episodes that was fixed beforehand) and pooled counts (time-uniform limits, whatever ended the
    logs). Approximate: mean rewards, where rewards take too many values to tell apart, are limited as if no reward lay
    beyond those seen on the far side. Not covered: the assumption behind `support`.

    Args:
        counts: of one or several sources, or several counts to be merged.
        horizon: how many steps an episode has.
        reward_max: the most that a step can pay; an error if a source saw more ("paper" warns instead).
        method: "joint" or "paper".
        support: what unproven mass may do. "any": anything. "observed": what was seen to follow the state in any source
            after any action; an action that nobody tried there may do anything. A table {state: successors} or a
            function of state and action: only go to these, None standing for an end that leads nowhere.
        confounding: Gamma from 1 (a randomised trial) to inf (the demonstrator may have seen anything), for all sources
            or by name; sources that a mapping leaves out have inf. A finite one also says that an outcome that the
            source never saw after x, though it took x, is impossible.
        confidence: such as 0.95, that all ceilings hold at once; None gives a plug-in estimate.
        discount: the factor on future reward.
        stationary: the fixed point, the limit of ever longer horizons; for "paper" with omega = (H - 1) b. Steps must
            be pooled, and `values` has no axis for the step.
        min_visits: states that all sources together left fewer times than this get `any` support.
        value_max: what no state is worth more than (at any step, unless stationary), if you know it: such as 0 where
            all that an agent can do is lose little. It limits what unproven mass can come to, step by step.
        progress: called with the number of steps done and in all.

    Returns:
        `Ceilings`: `values` [steps, states], `q_values` [steps, states, actions], assumptions, a verdict.

    Examples:
        >>> from causal_shaping import count, load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 20_000) for name in world.demonstrators])
        >>> value_ceilings(counts, horizon=20, reward_max=-0.1, confidence=0.95)
        Ceilings of 20 steps by joint from good, bad, random: ...
    """
    merged = merge_counts(counts)
    if method not in METHODS:
        raise ArgumentError(f"method is {method!r}; use {' or '.join(map(repr, METHODS))}.")
    highest = float(merged.reward_max.max())
    _refuse_infinite("reward_max", reward_max)
    if method == "joint" and reward_max < highest:
        source = merged.sources[merged.source[merged.reward_max.argmax()]]
        raise ArgumentError(
            f"reward_max is {reward_max}, but source {source!r} holds a reward of {highest}. A ceiling needs a true "
            f"upper bound of the reward: pass reward_max={highest} or more."
        )
    options = _Options(
        horizon, reward_max, support, confounding, confidence, discount, stationary, min_visits, value_max
    )
    options.check(merged)
    if method == "joint":
        return _joint(Ceilings, merged, options, progress)
    if confidence is not None or value_max is not None or not np.isinf(options.gammas(merged)).all():
        raise ArgumentError(
            "The paper's method has no confidence, no finite confounding and no value_max. Use method='joint' for them."
        )
    solution = paper_ceilings(merged, horizon, reward_max, discount=discount, stationary=stationary)
    result = _bounds(Ceilings, merged, options, solution, method, "any")
    if solution.caveats:
        warnings.warn(
            "The paper's bound is not guaranteed here. " + " ".join(solution.caveats), AssumptionWarning, stacklevel=2
        )
    return result


def value_floors(
    counts: Counts | Sequence[Counts],
    horizon: int,
    reward_min: float,
    support: Support = "observed",
    confounding: float | Mapping[str, float] = math.inf,
    confidence: float | None = None,
    discount: float = 1.0,
    stationary: bool = False,
    *,
    min_visits: float = 0.0,
    progress: Progress = lambda done, total: None,
) -> Floors:
    """Return lower bounds of the optimal interventional value: the mirror image of `value_ceilings`.

    Unproven mass has the worst allowed outcome, and a step pays at least `reward_min`. The best action is still the one
    with the highest bound: some policy earns that much.
    """
    merged = merge_counts(counts)
    lowest = float(merged.reward_min.min())
    _refuse_infinite("reward_min", reward_min)
    if reward_min > lowest:
        source = merged.sources[merged.source[merged.reward_min.argmin()]]
        raise ArgumentError(
            f"reward_min is {reward_min}, but source {source!r} holds a reward of {lowest}. A floor needs a true "
            f"lower bound of the reward: pass reward_min={lowest} or less."
        )
    options = _Options(horizon, reward_min, support, confounding, confidence, discount, stationary, min_visits)
    options.check(merged)
    return _joint(Floors, merged, options, progress)


def provably_suboptimal(ceilings: Ceilings, floors: Floors) -> BoolArray:
    """Return which actions cannot be optimal: bool [steps, states, actions], in the order of the ceilings' space.

    An action whose ceiling lies below the floor of the state is worse than what some policy is sure to earn, under the
    assumptions of both bounds. As a mask of what not to try it leaves every state an action.

    Raises:
        ArgumentError: if the two bounds are not of the same problem.
        ContradictionError: if a ceiling lies below its floor.
    """
    for name in ("horizon", "discount", "stationary"):
        ours, theirs = getattr(ceilings, name), getattr(floors, name)
        if ours != theirs:
            raise ArgumentError(f"The ceilings have {name} {ours}, the floors {theirs}. Compute both alike.")
    if set(ceilings.space.states) != set(floors.space.states) or set(ceilings.space.actions) != set(
        floors.space.actions
    ):
        raise ArgumentError("The ceilings and the floors are not of the same states and actions.")
    order, _ = floors.space.positions(ceilings.space)
    floor = floors.values[..., order]
    margin = BEYOND_ROUNDING * np.maximum(1.0, np.abs(floor))
    result = ceilings.q_values < (floor - margin)[..., None]
    result[..., ceilings.terminal, :] = False
    nothing_left = result.all(axis=-1)
    if nothing_left.any():
        *step, state = np.argwhere(nothing_left)[0].tolist()
        raise ContradictionError(
            f"The ceiling of {ceilings.space.states[state]!r}{f' at step {step[0]}' if step else ''} lies below its "
            "floor: the two were computed from different counts or assumptions that contradict each other."
        )
    return result


@dataclass(frozen=True, eq=False)
class _Options:
    """What ceilings and floors have in common."""

    horizon: int
    extreme: float
    support: Support
    confounding: float | Mapping[str, float]
    confidence: float | None
    discount: float
    stationary: bool
    min_visits: float
    value_max: float | None = None

    def gammas(self, counts: Counts) -> FloatArray:
        return source_confounding(counts, self.confounding)

    def check(self, counts: Counts) -> None:
        check_integer("horizon", self.horizon, least=1)
        check_discount(self.discount)
        self.gammas(counts)
        if self.value_max is not None:
            _refuse_infinite("value_max", self.value_max)
        if not self.min_visits >= 0:
            raise ArgumentError(f"min_visits is {self.min_visits}; it must be 0 or more.")
        if self.min_visits and self.support != "observed":
            raise ArgumentError(
                "min_visits says where support 'observed' is not to be trusted; leave it out for any other."
            )
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ArgumentError(f"confidence is {self.confidence}; it must be between 0 and 1, such as 0.95.")
        if self.confidence is not None and counts.population:
            raise ArgumentError("Population counts are exact: there is no sampling error to be confident about.")
        if counts.step is not None:
            if self.stationary:
                raise ArgumentError("A fixed point needs steps pooled, but these counts are kept apart by step.")
            longest = int(counts.step.max()) + 1
            if longest > self.horizon:
                raise ArgumentError(
                    f"horizon is {self.horizon}, but the logs hold episodes of {longest} steps. Pass horizon={longest} "
                    "or more, or pool the steps."
                )


def _refuse_infinite(name: str, bound: float) -> None:
    if not math.isfinite(bound):
        raise ArgumentError(f"{name} is {bound}; it must be a finite number.")


def merge_counts(counts: Counts | Sequence[Counts]) -> Counts:
    """Return one or several counts as one that is not empty."""
    parts = [counts] if isinstance(counts, Counts) else list(counts)
    if not parts:
        raise ArgumentError("There are no counts to bound values with.")
    most = np.iinfo(np.int64).max  # whether rewards are told apart was decided when the parts were counted
    merged = parts[0].merge(*parts[1:], max_rewards=most) if len(parts) > 1 else parts[0]
    if not len(merged):
        raise DataError("The counts are empty: nothing was logged.")
    return merged


def _joint(kind: type[Kind], counts: Counts, options: _Options, progress: Progress) -> Kind:
    if len(counts.sources) == 1 and options.support == "observed":
        warnings.warn(
            f"Only {counts.sources[0]!r} is there to show what can follow a state. Support 'observed' takes all else "
            "for impossible; with one source it is better to pass support='any'.",
            AssumptionWarning,
            stacklevel=3,
        )
    silent = sources_without_terminations(counts)
    if silent and options.support == "observed":
        stopped = counts.n[~counts.outcome_known & np.isin(counts.source, silent)].sum()
        warnings.warn(
            f"No episode of {', '.join(counts.sources[i] for i in silent)} is known to have ended, and {stopped:,.0f} "
            "steps do not tell what followed them: anything may have. Pass the column that says whether an episode "
            "ended (terminated=, --terminated), or those of the next state.",
            AssumptionWarning,
            stacklevel=3,
        )
    solution = joint_bounds(
        counts,
        options.horizon,
        options.extreme,
        kind.SIDE,
        support=options.support,
        gammas=options.gammas(counts),
        confidence=options.confidence,
        discount=options.discount,
        min_visits=options.min_visits,
        stationary=options.stationary,
        value_max=options.value_max,
        progress=progress,
    )
    return _bounds(kind, counts, options, solution, "joint", options.support)


def _bounds(
    kind: type[Kind], counts: Counts, options: _Options, solution: Solution, method: str, support: Support
) -> Kind:
    caveats = list(solution.caveats)
    if options.confidence is None and not counts.population:
        caveats.append("a plug-in estimate, sampling error is not allowed for.")
    return kind(
        space=counts.space,
        values=solution.values,
        q_values=solution.q_values,
        vacuous=solution.vacuous,
        terminal=solution.terminal,
        sources=counts.sources,
        confounding=dict(zip(counts.sources, options.gammas(counts).tolist(), strict=True)),
        horizon=int(options.horizon),
        reward_bound=float(options.extreme),
        discount=float(options.discount),
        method=method,
        support=support if isinstance(support, str) else "given",
        confidence=None if options.confidence is None else float(options.confidence),
        min_visits=float(options.min_visits),
        discrete_rewards=all(counts.discrete_rewards),
        rewards_seen=(float(counts.reward_min.min()), float(counts.reward_max.max())),
        population=counts.population,
        step_indexed=counts.step_indexed,
        stationary=bool(options.stationary),
        inferred_terminal=int((solution.terminal & ~counts.space.is_terminal).sum()),
        caveats=tuple(caveats),
        sweeps=solution.sweeps,
        contraction=solution.contraction,
        counts_checksum=counts.checksum,
        value_max=None if options.value_max is None else float(options.value_max),
    )
