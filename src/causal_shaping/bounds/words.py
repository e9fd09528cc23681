"""Bounds in words: what they are, what they assume, and what they are worth as a potential."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from causal_shaping.bounds.settings import CEILING, MAX_CONFOUNDING, OBSERVED, TIE
from causal_shaping.bounds.verdict import DOUBTFUL, HELPS, Outlook

if TYPE_CHECKING:
    from causal_shaping.bounds.results import Bounds, Ceilings
    from causal_shaping.bounds.sensitivity import Sensitivity
    from causal_shaping.data.space import Space

MANY_ROWS = 100_000
"""Nobody will log more rows than this of each action in each state."""

LARGEST_PERCENT = 10
"""Shares above this, which is 1000%, are not told apart."""


# What bounds are ---------------------------------------------------------------------------------


def one_line(bounds: Bounds) -> str:
    """Return what bounds are in one line."""
    length = f"{bounds.horizon} steps"
    if bounds.stationary:
        length = "infinite horizon"
    return (
        f"{type(bounds).__name__}({length} by {bounds.method} from {', '.join(bounds.sources)}: "
        f"{bounds.states_bounded[0]:,} states bounded, {_range(bounds)})"
    )


def summary(bounds: Bounds) -> str:
    """Return what bounds are, why they are not guaranteed, the verdict, and the assumptions."""
    length, at = f"of {bounds.horizon} steps", " (at the first step)"
    if bounds.stationary:
        length, at = "without time limit", ""
    steps = "steps pooled"
    if bounds.step_indexed:
        steps = "steps kept apart"
    shown = _range(bounds)
    if bounds.sweeps is not None:
        shown += f", after {bounds.sweeps} sweeps with contraction {bounds.contraction:.3f}"
    tighter, weak, vacuous = bounds.states_bounded
    lines = [
        f"{type(bounds).__name__} {length} by {bounds.method} from {', '.join(bounds.sources)}: "
        f"{shown}",
        f"support {bounds.support}, confounding {_gammas(bounds)}, {_sureness(bounds)}, discount "
        f"{bounds.discount:g}, {steps}",
        f"{tighter:,} states bounded better than without logs, {weak:,} no better though logged, "
        f"{vacuous:,} in which no source acted, {bounds.terminal.sum():,} terminal{at}",
        *_exceptions(bounds),
        *(f"Not guaranteed: {caveat}" for caveat in bounds.caveats),
    ]
    verdict = getattr(bounds, "verdict", None)
    if verdict:
        lines += ["", verdict]
    return "\n".join([*lines, "", "This assumes:", *(f"- {one}" for one in bounds.assumptions)])


def _gammas(bounds: Bounds) -> str:
    """Return the confounding, one number if all sources have the same."""
    gammas = bounds.confounding
    if len(set(gammas.values())) == 1:
        return f"{next(iter(gammas.values())):g}"
    return ", ".join(f"{name} {gamma:g}" for name, gamma in gammas.items())


def _sureness(bounds: Bounds) -> str:
    """Return what the bounds allow for."""
    if bounds.population:
        return "population"
    if bounds.confidence is None:
        return "plug-in"
    return f"confidence {bounds.confidence}"


def _range(bounds: Bounds) -> str:
    """Return the range of the bounds at the first step, over states in which a source acted."""
    values, _, vacuous = bounds.first_step
    bounded = values[~vacuous & ~bounds.terminal]
    if not len(bounded):
        return "nowhere bounded"
    return f"from {bounded.min():.4g} to {bounded.max():.4g}"


def _exceptions(bounds: Bounds) -> list[str]:
    """Return where an observed support was not used, and what was scaled, a line each."""
    result, each, steps = [], "", slice(0, 1)
    if bounds.step_indexed:
        each, steps = ", counted at each step,", slice(None)
    acted = np.atleast_2d(~bounds.vacuous & ~bounds.terminal)[steps]
    free = np.atleast_2d(bounds.unrestricted)[steps] & acted
    if bounds.support in OBSERVED and free.any():
        why = "have unknown outcomes"
        if bounds.rarest is not None:
            why = "have too few visits to rule out unseen outcomes "
            why += f"(rarest = {bounds.rarest:g}), or unknown outcomes"
        result.append(
            f"{free.sum():,} of {acted.sum():,} states{each} {why}: anything may follow there."
        )
    if bounds.scaled:
        result.append(
            f"Of {bounds.scaled:,} actions in states{each} the sources prove more mass than 1, at "
            f"most {bounds.largest_total:.4g}; it was scaled to 1."
        )
    return result


# What bounds assume ------------------------------------------------------------------------------


def assumptions(bounds: Bounds) -> list[str]:
    """Return what bounds rest on, a sentence each."""
    more = "more"
    if bounds.SIDE != CEILING:
        more = "less"
    result = [
        f"No step pays {more} than {bounds.reward_bound:g}.",
        other_actions(bounds.space),
        "All sources and the online world are the same world.",
        "Episodes were not selected by their outcome (incident reports only would be).",
        "Hidden causes are drawn afresh each step. One that lasts over an episode, such as a "
        "patient's severity, breaks every bound of this kind.",
        "The state is Markov: what follows depends on the past only through the state, bins "
        "included.",
    ]
    if bounds.value_max is not None:
        at = ", at any step"
        if bounds.stationary:
            at = ""
        result.append(f"No state has a value above {bounds.value_max:g}{at}.")
    if not bounds.step_indexed:
        result.append("The world does not change from step to step, since the steps were pooled.")
    result += _about_confounding(bounds)
    if bounds.support in OBSERVED:
        result.append(_about_support(bounds))
    elif bounds.support == "given":
        result.append(
            "Nothing follows a state but the successors that were given; and in a state in which "
            "some source acted, episodes end only if an end was seen there."
        )
    if bounds.no_other_states:
        result.append(f"No other states exist than the {len(bounds.space.states):,} declared.")
    if bounds.inferred_terminal:
        states = "states"
        if bounds.inferred_terminal == 1:
            states = "state"
        result.append(
            "A state that ended every episode that entered it always ends it "
            f"({bounds.inferred_terminal} {states}). Use count(..., terminal=[...]) to make this "
            "certain."
        )
    return result + _about_confidence(bounds)


def other_actions(space: Space) -> str:
    """Return that no other actions exist."""
    more = ""
    if space.admissible:
        more = "; in a state, only its admissible ones do"
    actions = len(space.actions)
    return f"No other actions exist than the {actions} declared or seen in the logs{more}."


def _about_confounding(bounds: Bounds) -> list[str]:
    """Return what is assumed of hidden causes, by source."""
    result, unlimited = [], []
    for name, gamma in bounds.confounding.items():
        if math.isinf(gamma):
            unlimited.append(name)
            continue
        claim = (
            f"{name}: given the outcome that an action would have, the odds of taking it differ "
            f"from the odds given the state alone by a factor of at most {gamma:g}."
        )
        if gamma == 1:
            claim = (
                f"{name} is unconfounded: nothing that it saw beyond the log influenced its "
                "actions."
            )
        unseen = "rare"
        if bounds.confidence is None:
            unseen = "impossible"
        result += [
            claim,
            f"{name}: what never followed an action that it took is {unseen} after that action "
            "(overlap).",
        ]
    if unlimited:
        result.insert(
            0, f"Nothing about confounding: {', '.join(unlimited)} may have seen anything."
        )
    return result


def _about_support(bounds: Bounds) -> str:
    """Return what an observed support assumes."""
    where, by_action = "", bounds.support == "observed-action"
    if bounds.step_indexed:
        where = " at that step"
    if bounds.rarest is not None:
        what = "a state, after an action that some source takes there,"
        visits = "visits to it with a known outcome, all actions together"
        if by_action:
            what = "an action in a state"
            visits = "visits in which it was taken and the outcome is known"
        return (
            f"Whatever can follow {what}{where} follows at least a share of {bounds.rarest:g} of "
            f"the sources' pooled {visits}. Where visits are too few to have shown such outcomes, "
            "anything may follow."
        )
    if by_action:
        return (
            f"Whatever an action can do in a state{where} was seen to follow that action in that "
            "state at least once, in some source and in a row with a known outcome; an action that "
            "nobody tried may do anything."
        )
    return (
        f"Whatever can follow a state{where}, after an action that some source tried there, was "
        "seen to follow it at least once, in some source and in a row with a known outcome."
    )


def _about_confidence(bounds: Bounds) -> list[str]:
    """Return what the confidence of bounds rests on."""
    if bounds.confidence is None:
        return []
    result = []
    if bounds.step_indexed:
        result.append("The number of episodes was fixed before they were logged.")
    if not bounds.discrete_rewards:
        result.append(
            "The bins of rewards were chosen without looking at these logs. If they are quantiles "
            "of the same logs, the confidence is approximate."
        )
    result.append(
        f"Given that, all {bounds.KIND} hold at once with a probability of "
        f"{bounds.confidence:.4g} or more, over samples like this one."
    )
    return result


# What ceilings are worth as a potential ----------------------------------------------------------


def judge(ceilings: Ceilings) -> tuple[bool | None, str]:
    """Return whether ceilings make a useful potential, None if that is doubtful, and why."""
    outlook = ceilings.outlook
    no_help = "These ceilings do not help as a potential, use phi = 0:"
    if outlook is None:
        return None, "Whether these ceilings help as a potential was not examined."
    if (ceilings.vacuous | ceilings.terminal).all():
        return False, f"{no_help} no state is bounded better than without logs."
    if outlook.left is None:
        return False, (
            f"{no_help} the logs suggest no differences in value between the states that they "
            "bound."
        )
    facts = (
        f"they leave {_percent(outlook.left)} of the estimated differences in V* between states to "
        "learn (phi = 0 leaves 100%)."
    )
    if outlook.left < HELPS:
        return True, f"These ceilings help as a potential: {facts}"
    why = _why(ceilings, outlook, outlook.left)
    if outlook.left > DOUBTFUL:
        return False, f"{no_help} {facts} {why}"
    doubtful = "It is doubtful whether these ceilings help as a potential:"
    return None, f"{doubtful} {facts} Compare with phi = 0. {why}"


def _percent(share: float) -> str:
    """Return a share in words."""
    if share > LARGEST_PERCENT:
        return "more than 1000%"
    return f"about {share:.0%}"


def _why(ceilings: Ceilings, outlook: Outlook, left: float) -> str:
    """Return the largest reason why ceilings leave so much to learn, and what would leave less."""
    assert outlook.error is not None
    source = _randomised_source(outlook)
    if outlook.left_unlimited is not None and outlook.left_all_seen is not None:
        by_reason = {
            "confounding": outlook.left_unlimited,
            "sampling": outlook.left_all_seen - outlook.left_unlimited,
            "unseen": left - outlook.left_all_seen,
        }
        largest = max(by_reason, key=by_reason.__getitem__)
        unlimited = _percent(outlook.left_unlimited)
        if largest == "unseen":
            return (
                f"Most of that is outcomes that cannot be ruled out: with rarest = "
                f"{ceilings.rarest:g}, too few visits show all that may follow a state. If the "
                f"logs had shown it all, {_percent(outlook.left_all_seen)} would be left; more "
                "rows, or a larger rarest if that is true, come closer to it."
            )
        if largest == "sampling":
            return (
                f"Most of that is sampling error: at a confidence of {ceilings.confidence:g} these "
                f"rows prove little, and unlimited rows would leave {unlimited}. Ceilings without "
                "confidence may leave less; they are no bounds, but shaping is safe with any."
            )
        return (
            "Most of that is confounding: even unlimited rows of such logs would leave "
            f"{unlimited}; {source}."
        )
    if outlook.error**2 > left**2 / 2:
        return f"Most of that is sampling error: {source}."
    result = (
        f"Most of that is confounding: {len(ceilings.space.actions)} actions, the most frequent "
        f"one taken in {outlook.action_share:.0%} of the steps, at a confounding of "
        f"{max(ceilings.confounding.values()):g}. No amount of such data helps; {source}."
    )
    if ceilings.support == "any":
        result += (
            " Support 'any' lets whatever is not proven lead anywhere; 'observed' assumes more."
        )
    return result


def _randomised_source(outlook: Outlook) -> str:
    """Return how large a randomised source would have to be."""
    assert outlook.rows is not None
    rows = max(2.0, float(f"{outlook.rows:.1g}"))
    if rows > MANY_ROWS:
        return (
            "states differ so little in value that a randomised source would need more rows than "
            "can be had"
        )
    return (
        f"a randomised source of about {rows:,.0f} rows for each action in each state would leave "
        "less"
    )


# Sensitivity -------------------------------------------------------------------------------------


def sensitivity_summary(result: Sensitivity) -> str:
    """Return a line per Gamma and the findings."""
    lines = [f"Means over {result.bounded.sum():,} states, by confounding:"]
    for row in result.rows():
        shown = "the sources contradict each other"
        if not row["contradiction"]:
            shown = (
                f"ceiling {row['ceiling']:.4f}, floor {row['floor']:.4f}, "
                f"{row['suboptimal']:.1%} of actions provably suboptimal, best action singled out "
                f"in {row['singled_out']} states"
            )
        lines.append(f"- {row['confounding']:g}: {shown}")
    return "\n".join([*lines, "", *findings(result)])


def findings(result: Sensitivity) -> list[str]:
    """Return what matters most of a sensitivity analysis, in sentences."""
    sentences = []
    if result.plug_in:
        sentences.append(
            "These are plug-in estimates: sampling error is not allowed for, and an action that is "
            "called suboptimal here may be best. Set confidence to 0.95."
        )
    sentences += [f"Not guaranteed: {caveat}" for caveat in result.caveats]
    impossible = [
        f"{gamma:g}"
        for gamma, why in zip(result.confounding, result.contradictions, strict=True)
        if why is not None
    ]
    if impossible:
        sentences.append(
            f"At a confounding of {', '.join(impossible)} the sources contradict each other."
        )
    if _tightens(result):
        sentences.append(
            "Some bounds tighten as confounding grows, which only sampling error can do: at small "
            "confounding the sources differ within it, and were scaled to agree. Set confidence to "
            "0.95."
        )
    return [
        *sentences,
        *_about_best_actions(result),
        "Compare these values of confounding with what leaving out a logged column amounts to: "
        "confounding_of(..., hidden=['age']), or --hidden age.",
    ]


def _tightens(result: Sensitivity) -> bool:
    """Return whether some bound is tighter at a larger Gamma."""
    possible = [why is None for why in result.contradictions]
    ceilings, floors = (
        bounds[possible][:, result.bounded] for bounds in (result.ceilings, result.floors)
    )
    tie = TIE * max(np.abs(ceilings).max(initial=0.0), np.abs(floors).max(initial=0.0))
    falls = (np.diff(ceilings, axis=0) < -tie).any()
    return bool(falls or (np.diff(floors, axis=0) > tie).any())


def _about_best_actions(result: Sensitivity) -> list[str]:
    """Return in how many states the logs single out a best action, and up to which Gamma."""
    breakdown = np.where(result.bounded, result.breakdown, np.nan)
    known = breakdown[~np.isnan(breakdown)]
    states = int(result.bounded.sum())
    if not len(known):
        return [f"In none of {states} states do the logs single out a best action."]
    sentences = [
        f"In {len(known)} of {states} states the logs single out a best action, if confounding is "
        "small enough."
    ]
    finite = known[known < MAX_CONFOUNDING]
    if len(finite):
        weakest = int(np.nanargmin(breakdown))
        action = result.space.actions[result.best_action[weakest]]
        sentences.append(
            f"Break at a finite confounding: {len(finite)}, half of them at "
            f"{np.median(finite):.3g} or less; the first is {action} in "
            f"{result.space.states[weakest]} at {breakdown[weakest]:.3g}."
        )
    unlimited = int(np.isinf(known).sum())
    sentences.append(
        "Hold at any finite confounding, which takes what never followed an action for impossible "
        f"or rare: {len(known) - len(finite) - unlimited}; hold even without that: {unlimited}."
    )
    return sentences
