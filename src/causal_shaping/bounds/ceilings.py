"""Ceilings and floors of the optimal interventional value, from counts.

`value_ceilings` bounds from above, `value_floors` from below what an agent can earn that does not
see the hidden causes. Start here: the modules beside this one are the steps of `bound`.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from causal_shaping._checks import check_finite
from causal_shaping._progress import Progress, no_progress
from causal_shaping.bounds.joint import joint_bounds
from causal_shaping.bounds.published import paper_ceilings
from causal_shaping.bounds.results import Bounds, Ceilings, Floors
from causal_shaping.bounds.settings import (
    OBSERVED,
    Confounding,
    Settings,
    Support,
    merge_counts,
    refuse_reward,
)
from causal_shaping.bounds.solution import Solution
from causal_shaping.bounds.support import allowed_successors, sources_without_ends
from causal_shaping.bounds.verdict import HELPS, Outlook, outlook
from causal_shaping.data.counts import Counts
from causal_shaping.errors import ArgumentError, AssumptionWarning

PLUG_IN = "a plug-in estimate, sampling error is not allowed for."
"""The caveat of bounds of a sample without confidence."""

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
    """Return upper bounds of the optimal interventional value, for all steps, states and actions.

    Fix a step, a state s and an action x. Source i proves a mass L_i(o) of each outcome o under
    do(x) (`causal_shaping.bounds.masses`), and all sources watch the same world, so

        Qbar_h(s, x) = w - sum over o of  max_i L_i(o) * (w - r(o) - discount * Vbar_{h+1}(s'(o)))
        Vbar_h(s)    = max over all declared x of Qbar_h(s, x),

    where w is the best allowed outcome: what mass that nobody has proven could do.
    `method="paper"` is equation (5) and algorithm 2 of the paper instead, one source at a time with
    the minimum at the end (`causal_shaping.bounds.published`). It ignores `support`.

    **Finite samples.** With `confidence`, masses are replaced by confidence limits that all hold at
    once: a union bound over every source x state x action x outcome (x step), seen or not
    (`causal_shaping.bounds.masses.simultaneous_limits`). Exact: counts by step (binomial limits,
    for a number of episodes that was fixed beforehand) and pooled counts (time-uniform limits, for
    logs of any length). Approximate: rewards in bins whose edges were found in the same logs. The
    assumption behind an observed `support` gets its share of 1 - confidence and a number, `rarest`.
    More sources can loosen bounds with confidence: there are more limits.

    Args:
        counts: of one or several sources, or several counts to be merged.
        horizon: how many steps an episode has.
        reward_max: the most that a step can pay; an error if a source saw more ("paper" warns).
        method: "joint" or "paper".
        support: what unproven mass may do. "any": anything. "observed": what was seen to follow the
            state in any source after any action; an action that nobody tried there may do anything.
            "observed-action": what was seen to follow the state after that very action, in any
            source, a stronger assumption. A table {state: successors} or a function of state and
            action: go only to these, None standing for an end without a next state.
        confounding: Gamma from 1 (a randomised trial) to inf (the demonstrator may have seen
            anything), for all sources or by name; sources that a mapping leaves out have inf. A
            finite one also says that an outcome that the source never saw after x, though it took
            x, is impossible.
        confidence: the probability that all ceilings hold at once, such as 0.95; None gives a
            plug-in estimate.
        discount: the factor on future reward.
        stationary: the infinite-horizon bound, the limit of ever longer horizons; for "paper" with
            omega = (H - 1) b. Steps must be pooled, and `values` has no axis for the step.
        rarest: with `confidence` and an observed support, the smallest share of the visits to a
            state (after an action, for "observed-action"; at a step, for counts by step) that a
            possible outcome has; states with too few visits to have shown such outcomes get "any".
            None is 0.01. `causal_shaping.bounds.support` has the exact statement and its proof.
        value_max: a known upper bound on values (at any step, unless stationary), such as 0 where
            every reward is a cost. It limits what unproven mass can come to, step by step.
        reward_min: the least that a step can pay. The ceilings do not depend on it; with it,
            `ShapeReward` and `train` test while an agent acts whether what it earns contradicts
            them.
        progress: called after each step.

    Returns:
        `Ceilings`: `values` [steps, states], `q_values` [steps, states, actions], assumptions, a
        verdict.

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
    counts = merge_counts(counts)
    settings = _checked(Ceilings, counts, settings)
    if reward_min is not None:
        _refuse_reward_min(counts, settings, reward_min)
        reward_min = float(reward_min)
    _warn_of_doubts(counts, settings)
    solution = _solved(Ceilings, counts, settings, progress)
    return _result(
        Ceilings,
        counts,
        settings,
        solution,
        outlook=_outlook(counts, settings, solution),
        successors=allowed_successors(counts, settings),
        reward_min=reward_min,
    )


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
    """Return lower bounds of the optimal interventional value: `value_ceilings` mirrored.

    Unproven mass has the worst allowed outcome, and a step pays at least `reward_min`. The best
    action is still the one with the highest bound: some policy earns that much.
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
    counts = merge_counts(counts)
    settings = _checked(Floors, counts, settings)
    _warn_of_doubts(counts, settings)
    return _result(Floors, counts, settings, _solved(Floors, counts, settings, progress))


def bare_bounds(kind: type[Kind], counts: Counts, settings: Settings) -> Kind:
    """Return bounds that are a step to another result: without a verdict, and without warnings."""
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        settings = _checked(kind, counts, settings)
        return _result(kind, counts, settings, _solved(kind, counts, settings))


def _checked(kind: type[Bounds], counts: Counts, settings: Settings) -> Settings:
    """Return settings for these counts; refuse a reward bound that the logs break."""
    settings = settings.checked(counts)
    name = "reward_max"
    if kind is Floors:
        name = "reward_min"
    check_finite(name, settings.reward_bound)
    if settings.method == "joint":
        rewards = getattr(counts, name)
        row = int((kind.SIDE * rewards).argmax())
        source = counts.sources[counts.source[row]]
        refuse_reward(name, settings.reward_bound, source, rewards[row])
    return settings


def _refuse_reward_min(counts: Counts, settings: Settings, reward_min: float) -> None:
    """Refuse a least reward of ceilings that the logs, or the largest reward, break."""
    check_finite("reward_min", reward_min)
    row = int(counts.reward_min.argmin())
    smallest = counts.reward_min[row]
    what = "reward_max is less"
    if smallest < reward_min:
        what = f"source {counts.sources[counts.source[row]]!r} holds a reward of {smallest}"
    if min(smallest, settings.reward_bound) < reward_min:
        raise ArgumentError(
            f"reward_min is {reward_min}, but {what}. Pass the least that a step can pay."
        )


def _solved(
    kind: type[Bounds], counts: Counts, settings: Settings, progress: Progress = no_progress
) -> Solution:
    """Return the solution of the backward pass; warn if it is not guaranteed."""
    which = "Not guaranteed:"
    if settings.method == "paper":
        which = "The paper's bound is not guaranteed here."
        solution = paper_ceilings(counts, settings)
    else:
        solution = joint_bounds(counts, settings, kind.SIDE, progress)
    if solution.caveats:
        message = f"{which} {' '.join(solution.caveats)}"
        warnings.warn(message, AssumptionWarning, stacklevel=3)
    return solution


def _result(
    kind: type[Kind], counts: Counts, settings: Settings, solution: Solution, **more: Any
) -> Kind:
    """Return a solution with all that it rests on."""
    fields = vars(settings) | vars(solution) | more
    if settings.method == "paper":
        fields["support"] = "any"
    elif not isinstance(settings.support, str):
        fields["support"] = "given"
    if settings.confidence is None and not counts.population:
        fields["caveats"] = (*solution.caveats, PLUG_IN)
    return kind(
        **fields,
        space=counts.space,
        sources=counts.sources,
        discrete_rewards=counts.discrete_rewards,
        rewards_seen=(float(counts.reward_min.min()), float(counts.reward_max.max())),
        population=counts.population,
        step_indexed=counts.step_indexed,
        inferred_terminal=int((solution.terminal & ~counts.space.is_terminal).sum()),
        counts_checksum=counts.checksum,
    )


def _outlook(counts: Counts, settings: Settings, solution: Solution) -> Outlook:
    """Return what the verdict rests on.

    Ceilings with confidence that leave much to learn are computed twice more, to tell sampling
    error, outcomes that cannot be ruled out, and confounding apart.
    """
    result = outlook(counts, settings, solution)
    if settings.confidence is None or result.left is None or result.left < HELPS:
        return result
    left = []
    plug_in = dataclasses.replace(settings, confidence=None, rarest=None)
    for other in (plug_in, dataclasses.replace(settings, rarest=None)):
        with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
            values = _solved(Ceilings, counts, other).values
        left.append(outlook(counts, settings, dataclasses.replace(solution, values=values)).left)
    return dataclasses.replace(result, left_unlimited=left[0], left_all_seen=left[1])


def _warn_of_doubts(counts: Counts, settings: Settings) -> None:
    """Warn where an observed support is doubtful, and where many outcomes are unknown."""
    support, endless = settings.support, sources_without_ends(counts)
    observed = settings.method == "joint" and isinstance(support, str) and support in OBSERVED
    messages = []
    if observed and len(counts.sources) == 1:
        what = "a state"
        if support == "observed-action":
            what = "an action in a state"
        messages.append(
            f"Only {counts.sources[0]!r} is there to show what can follow {what}. Support "
            f"{support!r} takes all else for impossible; with one source it is better to set "
            "support to 'any'."
        )
    if observed and len(endless):
        stopped = counts.n[~counts.outcome_known & np.isin(counts.source, endless)].sum()
        messages.append(
            f"No episode of {', '.join(counts.sources[i] for i in endless)} is known to have "
            f"terminated, and {stopped:,.0f} steps have an unknown outcome: anything may have "
            "followed. Name the column that says whether an episode terminated (terminated=), or "
            "those of the next state (next_state=)."
        )
    many = _many_unknown(counts)
    if observed:
        many = {i: text for i, text in many.items() if i not in endless}
    if many:
        messages.append(
            f"Many steps do not tell what followed them: {', '.join(many.values())}. Anything may "
            "have, so they prove nothing but that the action was taken. Mark the episodes that "
            "terminated there, and record the next state of those that were cut."
        )
    for message in messages:
        warnings.warn(message, AssumptionWarning, stacklevel=3)


def _many_unknown(counts: Counts) -> dict[int, str]:
    """Return the sources with many unknown outcomes, by position, with the share in words."""
    size = len(counts.sources)
    steps = np.bincount(counts.source, counts.n, minlength=size)
    unknown = np.bincount(counts.source, counts.n * ~counts.outcome_known, minlength=size)
    return {
        int(i): f"{unknown[i] / steps[i]:.1%} of {counts.sources[i]}"
        for i in np.flatnonzero(unknown > MANY_UNKNOWN * steps)
    }
