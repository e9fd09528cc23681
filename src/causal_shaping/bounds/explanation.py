"""Results in words: what bounds are, what they rest on, and what they are worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from causal_shaping.bounds.settings import CEILING, MOST_CONFOUNDING, TIE

if TYPE_CHECKING:
    from causal_shaping.bounds.results import Bounds, Ceilings
    from causal_shaping.bounds.sensitivity import Sensitivity

FLAT = 0.1
"""A ceiling whose spread over states is a smaller share of its distance to zero than this is called flat."""

HARDLY = 0.5
"""A ceiling that takes a smaller share than this off the vacuous bound is called weak."""


def one_line(bounds: Bounds) -> str:
    """Return what bounds are in one line."""
    length = "infinite horizon" if bounds.stationary else f"{bounds.horizon} steps"
    _, bounded, shown = _range(bounds)
    kind, names = type(bounds).__name__, ", ".join(bounds.sources)
    return f"{kind}({length} by {bounds.method} from {names}: {bounded:,} states bounded, {shown})"


def summary(bounds: Bounds) -> str:
    """Return what bounds are in three lines, why they are not guaranteed, the verdict, and the assumptions."""
    length = "without time limit" if bounds.stationary else f"of {bounds.horizon} steps"
    gammas = bounds.confounding
    same = len(set(gammas.values())) == 1
    gamma = f"{next(iter(gammas.values())):g}" if same else ", ".join(f"{name} {g:g}" for name, g in gammas.items())
    sure = "population" if bounds.population else f"confidence {bounds.confidence}" if bounds.confidence else "plug-in"
    vacuous, bounded, shown = _range(bounds)
    if bounds.sweeps is not None:
        shown += f", after {bounds.sweeps} sweeps with contraction {bounds.contraction:.3f}"
    lines = [
        f"{type(bounds).__name__} {length} by {bounds.method} from {', '.join(bounds.sources)}: {shown}",
        f"support {bounds.support}, confounding {gamma}, {sure}, discount {bounds.discount:g}, "
        f"{'steps kept apart' if bounds.step_indexed else 'steps pooled'}",
        f"{bounded:,} states bounded, {vacuous:,} fell back to the vacuous value, {bounds.terminal.sum():,} terminal"
        + ("" if bounds.stationary else " (at the first step)"),
        *(f"Not guaranteed: {caveat}" for caveat in bounds.caveats),
    ]
    if found := getattr(bounds, "verdict", None):
        lines += ["", found]
    return "\n".join([*lines, "", "This assumes:", *(f"- {sentence}" for sentence in bounds.assumptions)])


def _range(bounds: Bounds) -> tuple[int, int, str]:
    """Return how many states are vacuous and how many are bounded at the first step, and from where to where."""
    values, _, vacuous = bounds.first_step
    bounded = values[~vacuous & ~bounds.terminal]
    shown = f"from {bounded.min():.4g} to {bounded.max():.4g}" if len(bounded) else "nowhere bounded"
    return int(vacuous.sum()), len(bounded), shown


def assumptions(bounds: Bounds) -> list[str]:
    """Return what bounds rest on, a sentence each."""
    ceiling = bounds.SIDE == CEILING
    result = [
        f"No step pays {'more' if ceiling else 'less'} than {bounds.reward_bound:g}.",
        "All sources and the online world are the same world.",
        "Hidden causes are drawn afresh each step. One that lasts over an episode, such as a patient's severity, "
        "breaks every bound of this kind.",
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
    if bounds.support == "observed":
        where = " at that step" if bounds.step_indexed else ""
        result.append(
            f"Whatever can follow a state{where}, after an action that some source tried there, was seen to follow it "
            "at least once, in some source and in a row with a known outcome."
        )
        if bounds.min_visits:
            result[-1] += f" States with fewer than {bounds.min_visits:g} visits are exempt."
    elif bounds.support == "given":
        result.append(
            "Nothing follows a state but the successors that were given; and in a state in which some source acted, "
            "episodes end only if an end was seen there."
        )
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
            far = "below the lowest" if ceiling else "above the highest"
            result.append(f"No reward lies {far} one seen: the limits of mean rewards rest on that.")
        result.append(
            f"Given that, all {bounds.KIND} hold at once with a probability of {bounds.confidence:.4g} or more, over "
            "samples like this one."
        )
    return result


def verdict(ceilings: Ceilings) -> tuple[bool | None, str]:
    """Return whether ceilings make a useful potential, None if that is doubtful, and why."""
    values, _, fell_back = ceilings.first_step
    vacuous = float(np.ravel(ceilings.vacuous_values)[0])
    shown = values[~fell_back & ~ceilings.terminal]
    if not len(shown):
        return False, "These logs do not help here, use phi = 0: no state is bounded better than without logs."
    level, spread = float(shown.mean()), float(shown.std())
    facts = f"the ceiling is {level:.3g} on average (vacuous: {vacuous:.3g}), and spreads by {spread:.3g} over states"
    if spread < FLAT * abs(level) or spread == 0:
        return False, f"These logs do not help here, use phi = 0: {facts}, which is nearly flat."
    if vacuous > 0 and math.isfinite(vacuous) and vacuous - level < HARDLY * vacuous:
        return False, f"These logs do not help here, use phi = 0: {facts}. Most of that is known without logs."
    if abs(level) < spread:
        return None, (
            f"It is doubtful whether these logs help: {facts}; zero lies well within it and is as good a guess. "
            "Compare with phi = 0."
        )
    return True, f"These logs help: {facts}."


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
    possible = [why is None for why in found.contradictions]
    if impossible := [f"{g:g}" for g, fine in zip(found.confounding, possible, strict=True) if not fine]:
        result.append(f"At a confounding of {', '.join(impossible)} the sources contradict each other.")
    ceilings, floors = found.ceilings[possible][:, found.bounded], found.floors[possible][:, found.bounded]
    if (np.diff(ceilings, axis=0) < -TIE).any() or (np.diff(floors, axis=0) > TIE).any():
        result.append(
            "Some bounds tighten as confounding grows, which only sampling error can do: at small confounding the "
            "sources differ within it, and were scaled to agree. Use confidence=0.95."
        )
    yardstick = (
        "Compare these values of confounding with what leaving out a logged column amounts to: "
        "confounding_of(..., hidden=['age'])."
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
