"""Ceilings and floors of the optimal interventional value, from counts.

- `value_ceilings`, `value_floors`: the two bounds.
- `provably_suboptimal`: what follows from both.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from causal_shaping._checks import check_finite
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds._compare import disagreements
from causal_shaping.bounds._joint import joint_bounds
from causal_shaping.bounds._published import paper_ceilings
from causal_shaping.bounds.results import Bounds, Ceilings, Floors
from causal_shaping.bounds.settings import Confounding, Settings, merge_counts, refuse_reward
from causal_shaping.bounds.support import OBSERVED, Support, allowed_successors, sources_without_terminations
from causal_shaping.bounds.verdict import outlook
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.counts import Counts
from causal_shaping.errors import ArgumentError, AssumptionWarning, ContradictionError

PLUG_IN = "a plug-in estimate, sampling error is not allowed for."
"""The caveat of bounds of a sample without confidence."""

BEYOND_ROUNDING = 1e-9
"""How far a ceiling must lie below a floor, relative to the larger, before anything is concluded from it."""

MANY_UNKNOWN = 0.01
"""More unknown outcomes than this, as a share of a source's steps, are worth a warning."""

Kind = TypeVar("Kind", bound=Bounds)


def value_ceilings(
    counts: Counts | Sequence[Counts],
    horizon: int,
    reward_max: float,
    *,
    method: str = "joint",
    support: Support = "observed",
    confounding: Confounding = math.inf,
    confidence: float | None = None,
    discount: float = 1.0,
    stationary: bool = False,
    rarest: float | None = None,
    value_max: float | None = None,
    reward_min: float | None = None,
    progress: Progress = no_progress,
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
    The number K and what it counts: `bounds._masses.sampling_of`. Exact: counts by step (binomial limits, for a number
    of episodes that was fixed beforehand) and pooled counts (time-uniform limits, for logs of any length). Approximate:
    rewards in bins whose edges were found in the same logs. The assumption behind an observed `support` gets its share
    of 1 - confidence and a number, `rarest`. More sources can loosen bounds with confidence: there are more limits.

    Args:
        counts: of one or several sources, or several counts to be merged.
        horizon: how many steps an episode has.
        reward_max: the most that a step can pay; an error if a source saw more ("paper" warns instead).
        method: "joint" or "paper".
        support: what unproven mass may do. "any": anything. "observed": what was seen to follow the state in any source
            after any action; an action that nobody tried there may do anything. "observed-action": what was seen to
            follow the state after that very action, in any source, a stronger assumption. A table
            {state: successors} or a function of state and action: go only to these, None standing for an end without
            a next state.
        confounding: Gamma from 1 (a randomised trial) to inf (the demonstrator may have seen anything), for all sources
            or by name; sources that a mapping leaves out have inf. A finite one also says that an outcome that the
            source never saw after x, though it took x, is impossible.
        confidence: the probability that all ceilings hold at once, such as 0.95; None gives a plug-in estimate.
        discount: the factor on future reward.
        stationary: the infinite-horizon bound, the limit of ever longer horizons; for "paper" with omega = (H - 1) b.
            Steps must be pooled, and `values` has no axis for the step.
        rarest: with `confidence` and an observed support, the smallest share of the visits to a state (after an action,
            for "observed-action"; at a step, for counts by step) that a possible outcome has; states with too few
            visits to have shown such outcomes get `any`. None is 0.01. See `causal_shaping.bounds.support` for the
            exact statement and its proof.
        value_max: a known upper bound on values (at any step, unless stationary), such as 0 where every reward is a
            cost. It limits what unproven mass can come to, step by step.
        reward_min: the least that a step can pay. The ceilings do not depend on it; with it, `ShapeReward` and `train`
            test while an agent acts whether what it earns contradicts them.
        progress: called after each step.

    Returns:
        `Ceilings`: `values` [steps, states], `q_values` [steps, states, actions], assumptions, a verdict.

    Examples:
        >>> from causal_shaping import count, load_world
        >>> world = load_world("lavacross-easy")
        >>> counts = count([world.collect(name, 20_000) for name in world.demonstrators])
        >>> value_ceilings(counts, horizon=20, reward_max=-0.1, confidence=0.95)
        Ceilings(20 steps by joint from good, bad, random: 41 states bounded, from ... to ...)
    """
    settings = Settings(
        horizon=horizon,
        reward_bound=reward_max,
        method=method,
        support=support,
        confounding=confounding,
        confidence=confidence,
        discount=discount,
        stationary=stationary,
        rarest=rarest,
        value_max=value_max,
    )
    return compute(Ceilings, merge_counts(counts), settings, progress, reward_min=reward_min)


def value_floors(
    counts: Counts | Sequence[Counts],
    horizon: int,
    reward_min: float,
    *,
    support: Support = "observed",
    confounding: Confounding = math.inf,
    confidence: float | None = None,
    discount: float = 1.0,
    stationary: bool = False,
    rarest: float | None = None,
    progress: Progress = no_progress,
) -> Floors:
    """Return lower bounds of the optimal interventional value: the mirror image of `value_ceilings`.

    Unproven mass has the worst allowed outcome, and a step pays at least `reward_min`. The best action is still the one
    with the highest bound: some policy earns that much.
    """
    settings = Settings(
        horizon=horizon,
        reward_bound=reward_min,
        support=support,
        confounding=confounding,
        confidence=confidence,
        discount=discount,
        stationary=stationary,
        rarest=rarest,
    )
    return compute(Floors, merge_counts(counts), settings, progress)


def provably_suboptimal(ceilings: Ceilings, floors: Floors, *, plug_in: bool = False) -> BoolArray:
    """Return which actions cannot be optimal: bool [steps, states, actions], in the order of the ceilings' space.

    An action whose ceiling lies below the floor of the state is worse than what some policy is sure to earn, under the
    assumptions of both bounds. In every state at least one action remains; one that is not admissible is not masked.

    Plug-in bounds of a sample prove nothing: actions that are equally good look different by chance alone. Bounds with
    a `confidence` hold all at once, and ceilings and floors of the same counts and settings rest on the same limits of
    masses and the same visits: whatever one of them needs was counted once for both, so that the mask is wrong
    anywhere with a probability of 1 - confidence at most.

    Args:
        ceilings: with a confidence, or from population counts.
        floors: of the same counts; of others, the chances that either is wrong add up.
        plug_in: accept bounds that are not guaranteed, to study them; a warning says what the mask is worth.

    Raises:
        ArgumentError: if the two bounds are not of the same problem, are plug-in estimates, or are not guaranteed for
            another reason (`caveats`).
        ContradictionError: if a ceiling lies below its floor.
    """
    refuse_plug_in(plug_in, *(bounds.plug_in for bounds in (ceilings, floors)))
    doubts = (*ceilings.caveats, *floors.caveats)
    if doubts and not plug_in:
        raise ArgumentError(
            f"Bounds that are not guaranteed prove no action suboptimal: {doubts[0]} Mend that, or set plug_in to "
            "study what such bounds would say."
        )
    result = masked(ceilings, floors)
    if doubts:
        warnings.warn(
            f"This mask comes from bounds that are not guaranteed, and a masked action may be best: {doubts[0]}",
            AssumptionWarning,
            stacklevel=2,
        )
    return result


def masked(ceilings: Ceilings, floors: Floors) -> BoolArray:
    """Return which actions have a ceiling below the floor of the state, whatever the bounds are worth."""
    floor = refuse_crossing(ceilings, floors)
    result = ceilings.q_values < (floor - _margin(ceilings, floor))[..., None]
    result[..., ceilings.terminal, :] = False
    return result


def refuse_plug_in(plug_in: bool, *estimated: bool) -> None:
    """Refuse to conclude from plug-in bounds of a sample that actions are suboptimal, unless told to."""
    if any(estimated) and not plug_in:
        raise ArgumentError(
            "Plug-in bounds of a sample prove no action suboptimal: equally good ones look different by chance alone. "
            "Set confidence to 0.95 for ceilings and floors, or set plug_in to study plug-in estimates."
        )


def refuse_crossing(ceilings: Ceilings, floors: Floors) -> FloatArray:
    """Refuse bounds of which a ceiling lies below its floor; return the floors in the order of the ceilings' space."""
    for name in ("horizon", "discount", "stationary"):
        ours, theirs = getattr(ceilings, name), getattr(floors, name)
        if ours != theirs:
            raise ArgumentError(f"The ceilings have {name} {ours}, the floors {theirs}. Compute both alike.")
    above, below = ceilings.space, floors.space
    if set(above.states) != set(below.states) or set(above.actions) != set(below.actions):
        raise ArgumentError("The ceilings and the floors are not of the same states and actions.")
    order, _ = below.positions(above)
    floor = np.asarray(floors.values[..., order])
    crossed = (ceilings.values < floor - _margin(ceilings, floor)) & ~ceilings.terminal
    if crossed.any():
        place = tuple(np.argwhere(crossed)[0].tolist())
        chance = ceilings.plug_in or floors.plug_in
        raise ContradictionError(
            f"The ceiling of {above.states[place[-1]]!r}{f' at step {place[0]}' if len(place) > 1 else ''} lies below "
            f"its floor, {ceilings.values[place]:.4g} against {floor[place]:.4g}: no world fits both. "
            + (
                "These are plug-in bounds, which cross by sampling error, too: set confidence to 0.95. "
                if chance
                else ""
            )
            + "If both are of the same counts and settings, then either a source is more confounded than declared, or "
            "the sources did not watch the same world, or a hidden cause lasts over the episode."
        )
    return floor


def _margin(ceilings: Ceilings, floor: FloatArray) -> FloatArray:
    """Return how far a ceiling must lie below a floor before anything is concluded from it."""
    return np.asarray(BEYOND_ROUNDING * np.maximum(ceilings.unit, np.abs(floor)))


def compute(
    kind: type[Kind],
    counts: Counts,
    settings: Settings,
    progress: Progress = no_progress,
    *,
    doubts: bool = True,
    reward_min: float | None = None,
) -> Kind:
    """Return bounds; refuse settings that do not fit the counts, and warn of doubts unless told not to."""
    settings = settings.checked(counts)
    _refuse_reward_bound(kind, counts, settings)
    if reward_min is not None:
        _refuse_reward_min(counts, settings, reward_min)
    if doubts:
        _warn_of_doubts(counts, settings)
    joint, support = settings.method == "joint", settings.support
    solution = joint_bounds(counts, settings, kind.SIDE, progress) if joint else paper_ceilings(counts, settings)
    caveats = solution.caveats
    if caveats:
        which = "Not guaranteed:" if joint else "The paper's bound is not guaranteed here."
        warnings.warn(f"{which} {' '.join(caveats)}", AssumptionWarning, stacklevel=3)
    if settings.confidence is None and not counts.population:
        caveats = (*caveats, PLUG_IN)
    shown = "any" if not joint else support if isinstance(support, str) else "given"
    extra: dict[str, Any] = {"support": shown, "caveats": caveats}
    if doubts and kind is Ceilings:
        extra["outlook"] = outlook(counts, settings, solution)
        extra["successors"] = allowed_successors(counts, settings)
        extra["reward_min"] = None if reward_min is None else float(reward_min)
    return kind(
        **vars(settings) | vars(solution) | extra,
        space=counts.space,
        sources=counts.sources,
        discrete_rewards=counts.discrete_rewards,
        rewards_seen=(float(counts.reward_min.min()), float(counts.reward_max.max())),
        population=counts.population,
        step_indexed=counts.step_indexed,
        inferred_terminal=int((solution.terminal & ~counts.space.is_terminal).sum()),
        counts_checksum=counts.checksum,
    )


def _refuse_reward_bound(kind: type[Bounds], counts: Counts, settings: Settings) -> None:
    """Refuse a reward bound that the logs break."""
    name = "reward_max" if kind is Ceilings else "reward_min"
    check_finite(name, settings.reward_bound)
    seen = getattr(counts, name)
    entry = int((kind.SIDE * seen).argmax())
    if settings.method == "joint":
        refuse_reward(name, settings.reward_bound, counts.sources[counts.source[entry]], seen[entry])


def _refuse_reward_min(counts: Counts, settings: Settings, reward_min: float) -> None:
    """Refuse a least reward of ceilings that the logs, or the largest reward, break."""
    check_finite("reward_min", reward_min)
    entry = int(counts.reward_min.argmin())
    source, seen = counts.sources[counts.source[entry]], counts.reward_min[entry]
    if min(seen, settings.reward_bound) < reward_min:
        what = f"source {source!r} holds a reward of {seen}" if seen < reward_min else "reward_max is less"
        raise ArgumentError(f"reward_min is {reward_min}, but {what}. Pass the least that a step can pay.")


def _warn_of_doubts(counts: Counts, settings: Settings) -> None:
    """Warn where an observed support is doubtful, and where many outcomes are unknown."""
    support, endless = settings.support, sources_without_terminations(counts)
    observed = settings.method == "joint" and isinstance(support, str) and support in OBSERVED
    if observed and len(counts.sources) == 1:
        what = "a state" if support == "observed" else "an action in a state"
        warnings.warn(
            f"Only {counts.sources[0]!r} is there to show what can follow {what}. Support {support!r} takes all else "
            "for impossible; with one source it is better to set support to 'any'.",
            AssumptionWarning,
            stacklevel=4,
        )
    if observed and support == "observed-action" and len(counts.sources) > 1 and not counts.population:
        found = disagreements(counts)
        if len(found.state):
            action, state = counts.space.actions[found.action[0]], counts.space.states[found.state[0]]
            warnings.warn(
                f"Sources show different outcomes after the same action in {len(found.state):,} cases, of {action!r} "
                f"in {state!r} among them: some take an action only when it will do certain things. Support "
                "'observed-action' holds only if all else that it can do was seen in some source; support 'observed' "
                "assumes less.",
                AssumptionWarning,
                stacklevel=4,
            )
    if observed and endless:
        stopped = counts.n[~counts.outcome_known & np.isin(counts.source, endless)].sum()
        warnings.warn(
            f"No episode of {', '.join(counts.sources[i] for i in endless)} is known to have terminated, and "
            f"{stopped:,.0f} steps have an unknown outcome: anything may have followed. Name the column that says "
            "whether an episode terminated (terminated), or those of the next state (next_state).",
            AssumptionWarning,
            stacklevel=4,
        )
    if many := [text for i, text in _many_unknown(counts).items() if not observed or i not in endless]:
        warnings.warn(
            f"Many steps do not tell what followed them: {', '.join(many)}. Anything may have, so they prove nothing "
            "but that the action was taken. Mark the episodes that terminated there, and record the next state of "
            "those that were cut.",
            AssumptionWarning,
            stacklevel=4,
        )


def _many_unknown(counts: Counts) -> dict[int, str]:
    """Return the sources many of whose steps have an unknown outcome, by position, with the share in words."""
    steps, unknown = (
        np.bincount(counts.source, weights, minlength=len(counts.sources))
        for weights in (counts.n, counts.n * ~counts.outcome_known)
    )
    return {
        int(i): f"{unknown[i] / steps[i]:.1%} of {counts.sources[i]}"
        for i in np.flatnonzero(unknown > MANY_UNKNOWN * steps)
    }
