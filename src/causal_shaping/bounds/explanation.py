"""Results in words: what bounds are, what they rest on, and what they are worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from causal_shaping.bounds.settings import CEILING, MOST_CONFOUNDING, TIE
from causal_shaping.bounds.support import OBSERVED

if TYPE_CHECKING:
    from causal_shaping.bounds.results import Bounds
    from causal_shaping.bounds.sensitivity import Sensitivity
    from causal_shaping.data.space import Space


def one_line(bounds: Bounds) -> str:
    """Return what bounds are in one line."""
    length = "infinite horizon" if bounds.stationary else f"{bounds.horizon} steps"
    kind, names = type(bounds).__name__, ", ".join(bounds.sources)
    bounded = f"{bounds.states_bounded[0]:,} states bounded"
    return f"{kind}({length} by {bounds.method} from {names}: {bounded}, {_range(bounds)})"


def summary(bounds: Bounds) -> str:
    """Return what bounds are in three lines, why they are not guaranteed, the verdict, and the assumptions."""
    length = "without time limit" if bounds.stationary else f"of {bounds.horizon} steps"
    gammas = bounds.confounding
    same = len(set(gammas.values())) == 1
    gamma = f"{next(iter(gammas.values())):g}" if same else ", ".join(f"{name} {g:g}" for name, g in gammas.items())
    sure = "population" if bounds.population else f"confidence {bounds.confidence}" if bounds.confidence else "plug-in"
    shown = _range(bounds)
    if bounds.sweeps is not None:
        shown += f", after {bounds.sweeps} sweeps with contraction {bounds.contraction:.3f}"
    tighter, weak, vacuous = bounds.states_bounded
    lines = [
        f"{type(bounds).__name__} {length} by {bounds.method} from {', '.join(bounds.sources)}: {shown}",
        f"support {bounds.support}, confounding {gamma}, {sure}, discount {bounds.discount:g}, "
        f"{'steps kept apart' if bounds.step_indexed else 'steps pooled'}",
        f"{tighter:,} states bounded better than without logs, {weak:,} no better though logged, {vacuous:,} in which "
        f"no source acted, {bounds.terminal.sum():,} terminal" + ("" if bounds.stationary else " (at the first step)"),
        *_exceptions(bounds),
        *(f"Not guaranteed: {caveat}" for caveat in bounds.caveats),
    ]
    if found := getattr(bounds, "verdict", None):
        lines += ["", found]
    return "\n".join([*lines, "", "This assumes:", *(f"- {sentence}" for sentence in bounds.assumptions)])


def _range(bounds: Bounds) -> str:
    """Return from where to where the bounds of states in which a source acted go, at the first step."""
    values, _, vacuous = bounds.first_step
    bounded = values[~vacuous & ~bounds.terminal]
    return f"from {bounded.min():.4g} to {bounded.max():.4g}" if len(bounded) else "nowhere bounded"


def _exceptions(bounds: Bounds) -> list[str]:
    """Return where an observed support was not used, and what was scaled, a line each."""
    result = []
    which = ... if bounds.step_indexed or bounds.stationary else 0
    acted = (~bounds.vacuous & ~bounds.terminal)[which]
    free = bounds.unrestricted[which] & acted
    each = ", counted at each step" if bounds.step_indexed else ""
    if bounds.support in OBSERVED and free.any():
        few = "" if bounds.rarest is None else f"visits are too few for a rarest share of {bounds.rarest:g}, or "
        result.append(
            f"In {free.sum():,} of {acted.sum():,} states{each} anything may follow, as {few}outcomes are unknown."
        )
    if bounds.scaled:
        result.append(
            f"Of {bounds.scaled:,} actions in states{each} the sources prove more mass than 1, at most "
            f"{bounds.largest_total:.4g}; it was scaled to 1."
        )
    return result


def assumptions(bounds: Bounds) -> list[str]:
    """Return what bounds rest on, a sentence each."""
    ceiling = bounds.SIDE == CEILING
    result = [
        f"No step pays {'more' if ceiling else 'less'} than {bounds.reward_bound:g}.",
        other_actions(bounds.space),
        "All sources and the online world are the same world.",
        "Episodes were not selected by their outcome (incident reports only would be).",
        "Hidden causes are drawn afresh each step. One that lasts over an episode, such as a patient's severity, "
        "breaks every bound of this kind.",
        "The state is Markov: what follows depends on the past only through the state, bins included.",
    ]
    if bounds.value_max is not None:
        result.append(f"No state has a value above {bounds.value_max:g}{'' if bounds.stationary else ', at any step'}.")
    if not bounds.step_indexed:
        result.append("The world does not change from step to step, since the steps were pooled.")
    limited = {name: gamma for name, gamma in bounds.confounding.items() if math.isfinite(gamma)}
    if unlimited := [name for name in bounds.confounding if name not in limited]:
        result.append(f"Nothing about confounding: {', '.join(unlimited)} may have seen anything.")
    for name, gamma in limited.items():
        result.append(
            f"{name} is unconfounded: nothing that it saw beyond the log influenced its actions."
            if gamma == 1
            else f"{name}: given the outcome that an action would have, the odds of taking it differ from the odds "
            f"given the state alone by a factor of at most {gamma:g}."
        )
        unseen = "impossible" if bounds.confidence is None else "rare"
        result.append(f"{name}: what never followed an action that it took is {unseen} after that action (overlap).")
    if bounds.support in OBSERVED:
        result.append(_observed(bounds))
    elif bounds.support == "given":
        result.append(
            "Nothing follows a state but the successors that were given; and in a state in which some source acted, "
            "episodes end only if an end was seen there."
        )
    if bounds.no_other_states:
        result.append(f"No other states exist than the {len(bounds.space.states):,} declared.")
    if bounds.inferred_terminal:
        result.append(
            f"A state that ended every episode that entered it always ends it ({bounds.inferred_terminal} "
            f"state{'' if bounds.inferred_terminal == 1 else 's'}). Use count(..., terminal=[...]) to make "
            "this certain."
        )
    if bounds.confidence is not None:
        if bounds.step_indexed:
            result.append("The number of episodes was fixed before they were logged.")
        if not bounds.discrete_rewards:
            result.append(
                "The bins of rewards were chosen without looking at these logs. If they are quantiles of the same "
                "logs, the confidence is approximate."
            )
        result.append(
            f"Given that, all {bounds.KIND} hold at once with a probability of {bounds.confidence:.4g} or more, over "
            "samples like this one."
        )
    return result


def other_actions(space: Space) -> str:
    """Return that no other actions exist."""
    more = "; in a state, only its admissible ones do" if space.admissible else ""
    return f"No other actions exist than the {len(space.actions)} declared or seen in the logs{more}."


def _observed(bounds: Bounds) -> str:
    """Return what an observed support assumes."""
    where, by_action = " at that step" if bounds.step_indexed else "", bounds.support == "observed-action"
    if bounds.rarest is not None:
        what, visits = (
            "a state, after an action that some source takes there,",
            "visits to it with a known outcome, all actions together",
        )
        if by_action:
            what, visits = "an action in a state", "visits in which it was taken and the outcome is known"
        return (
            f"Whatever can follow {what}{where} follows at least a share of {bounds.rarest:g} of the sources' pooled "
            f"{visits}. Where visits are too few to have shown such outcomes, anything may follow."
        )
    if by_action:
        return (
            f"Whatever an action can do in a state{where} was seen to follow that action in that state at least once, "
            "in some source and in a row with a known outcome; an action that nobody tried may do anything."
        )
    return (
        f"Whatever can follow a state{where}, after an action that some source tried there, was seen to follow it "
        "at least once, in some source and in a row with a known outcome."
    )


def sensitivity_summary(found: Sensitivity) -> str:
    """Return a line per Gamma and the findings."""
    lines = [f"Means over {found.bounded.sum():,} states, by confounding:"]
    for row in found.rows():
        shown = "the sources contradict each other"
        if not row["contradiction"]:
            shown = f"ceiling {row['ceiling']:.4f}, floor {row['floor']:.4f}, {row['suboptimal']:.1%} of actions "
            shown += f"provably suboptimal, best action singled out in {row['singled_out']} states"
        lines.append(f"- {row['confounding']:g}: {shown}")
    return "\n".join([*lines, "", *findings(found)])


def findings(found: Sensitivity) -> list[str]:
    """Return what matters most of a sensitivity analysis, in sentences."""
    known = found.breakdown[found.bounded & ~np.isnan(found.breakdown)]
    states = int(found.bounded.sum())
    result = []
    if found.plug_in:
        result.append(
            "These are plug-in estimates: sampling error is not allowed for, and an action that is called suboptimal "
            "here may be best. Set confidence to 0.95."
        )
    result += [f"Not guaranteed: {caveat}" for caveat in found.caveats]
    possible = [why is None for why in found.contradictions]
    if impossible := [f"{g:g}" for g, fine in zip(found.confounding, possible, strict=True) if not fine]:
        result.append(f"At a confounding of {', '.join(impossible)} the sources contradict each other.")
    ceilings, floors = found.ceilings[possible][:, found.bounded], found.floors[possible][:, found.bounded]
    tie = TIE * max(np.abs(ceilings).max(initial=0.0), np.abs(floors).max(initial=0.0))
    if (np.diff(ceilings, axis=0) < -tie).any() or (np.diff(floors, axis=0) > tie).any():
        result.append(
            "Some bounds tighten as confounding grows, which only sampling error can do: at small confounding the "
            "sources differ within it, and were scaled to agree. Set confidence to 0.95."
        )
    yardstick = (
        "Compare these values of confounding with what leaving out a logged column amounts to: "
        "confounding_of(..., hidden=['age']), or --hidden age."
    )
    if not len(known):
        return [*result, f"In none of {states} states do the logs single out a best action.", yardstick]
    result.append(
        f"In {len(known)} of {states} states the logs single out a best action, if confounding is small enough."
    )
    finite = known[known < MOST_CONFOUNDING]
    if len(finite):
        weakest = int(np.argmin(np.where(np.isnan(found.breakdown) | ~found.bounded, np.inf, found.breakdown)))
        action, state = found.space.actions[found.best_action[weakest]], found.space.states[weakest]
        result.append(
            f"Break at a finite confounding: {len(finite)}, half of them at {np.median(finite):.3g} or less; the "
            f"first is {action} in {state} at {found.breakdown[weakest]:.3g}."
        )
    result.append(
        "Hold at any finite confounding, which takes what never followed an action for impossible or rare: "
        f"{len(known) - len(finite) - np.isinf(known).sum()}; hold even without that: {np.isinf(known).sum()}."
    )
    return [*result, yardstick]
