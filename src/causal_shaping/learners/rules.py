"""What a learner does with a step: Q-UCB and Q-UCB Shaping as one rule, whose constants can all be changed.

The rule, for a step from s by x with reward y to s' (algorithms 1 and 3 of the paper; h counts from 0):

    t          = N_h(s, x) <- N_h(s, x) + 1
    y'         = y + discount * phi_{h+1}(s') - phi_h(s)
    Q_h(s, x) <- (1 - alpha_t) Q_h(s, x) + alpha_t (y' + discount * V_{h+1}(s') + b_t),    alpha_t = (H + 1) / (H + t)
    V_h(s)    <- min(clip_h(s), max_x Q_h(s, x))
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from causal_shaping._checks import check_choice, check_names, check_probability
from causal_shaping.beliefs.inference import Posterior
from causal_shaping.bounds.results import Ceilings
from causal_shaping.data.potential import Potential
from causal_shaping.errors import ArgumentError, ShapingWarning
from causal_shaping.shaping.formula import TIME_LIMITS

BONUS_SCALES = ("horizon", "phi-max")
CLIPS = ("horizon", "potential", "zero", "none")
INITIALS = ("horizon", "zero")
CUSTOM = "custom"
"""The name of a learner that is given as a `Rule`."""


@dataclass(frozen=True)
class Rule:
    """The constants of a learner.

    Attributes:
        c: the factor of the bonus; 4 in the paper's experiments.
        p: the chance of failure in iota = log(S X T / p); 0.1 in the paper's experiments. S counts the states that are
            not terminal, T the steps of the budget.
        initial: the Q-values that learning starts from: "horizon", H as in Q-UCB; "zero", as in Q-UCB Shaping; or a
            number.
        bonus: the scale of the bonus: "horizon", b_t = c sqrt(H^3 iota / t) as in Q-UCB; "phi-max", c sqrt(H phi_m^2
            iota / t) as in Q-UCB Shaping, phi_m the largest potential, 0 for terminal states; or a number B in the unit
            of the rewards, b_t = B / sqrt(t).
        clip: the upper limit of V: "horizon", H as in Q-UCB; "potential", phi as in Q-UCB Shaping; "zero", which is
            valid and tighter under a potential that is a ceiling; "none".
        time_limit: what follows an episode that is truncated, without step index: "bootstrap" takes V and phi of the
            state where it was cut, "terminal" takes 0. With step index nothing follows the last step.
        shaped: whether the potential shapes the reward.
    """

    c: float = 4.0
    p: float = 0.1
    initial: str | float = "zero"
    bonus: str | float = "phi-max"
    clip: str = "potential"
    time_limit: str = "bootstrap"
    shaped: bool = True

    def __post_init__(self) -> None:
        words = {"initial": INITIALS, "bonus": BONUS_SCALES}
        for name in ("c", "p", "initial", "bonus"):
            value: Any = getattr(self, name)
            if name in words and isinstance(value, str):
                check_choice(name, value, words[name], ", or a number")
                continue
            if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise ArgumentError(f"{name} is {value!r}; it must be a number.")
            if value < 0 and name != "initial":
                raise ArgumentError(f"{name} is {value}; it must be 0 or more.")
            object.__setattr__(self, name, float(value))
        check_probability("p", self.p, "0.1")
        check_choice("clip", self.clip, CLIPS)
        check_choice("time_limit", self.time_limit, TIME_LIMITS)


PRESETS = MappingProxyType(
    {
        "q-ucb": Rule(initial="horizon", bonus="horizon", clip="horizon", shaped=False),
        "q-ucb-shaping": Rule(),
    }
)


POSTERIOR = "posterior"
"""The learner that samples from a posterior: it has no constants."""

LEARNERS = (POSTERIOR, *PRESETS)


def recommended_learner(potential: Posterior | Potential | Ceilings | None = None) -> str:
    """Return the name of the learner to use for what is at hand.

    "posterior" for a posterior, the most that logs can give; "q-ucb-shaping" for a potential or ceilings, and for
    nothing at all, as the paper prints it. With a potential or ceilings, "q-ucb-shaping" can lock
    in, so pass a posterior if you have the counts; without `learner=`, `train` warns.

    Examples:
        >>> recommended_learner()
        'q-ucb-shaping'
    """
    return POSTERIOR if isinstance(potential, Posterior) else "q-ucb-shaping"


def resolve(learner: str | Rule, **changes: Any) -> Rule:
    """Return a rule by name, or as given, with some constants changed."""
    if isinstance(learner, str):
        if learner not in PRESETS:
            raise ArgumentError(f"There is no learner {learner!r}. Learners are {', '.join(LEARNERS)}.")
        learner = PRESETS[learner]
    return replace(learner, **changes) if changes else learner


def choose(
    learner: str | Rule | None, potential: Any, changes: dict[str, Any], function: Callable[..., Any]
) -> tuple[str, Rule | None]:
    """Return the name and the rule of a learner, no rule for one without constants; None: the recommended one.

    `changes` are what the function got beside its own arguments.
    """
    if "label" in changes:
        raise ArgumentError(
            "A learner takes no label=: the observations of its environment must be states. Make them so, with "
            "gymnasium.wrappers.TransformObservation, or train an agent of your own in ShapeReward, which takes it."
        )
    check_names(changes, function.__name__, function, Rule)
    if not isinstance(potential, (Posterior, Ceilings, Potential, type(None))):
        raise ArgumentError(f"{potential!r} is no potential. Use posterior(counts, ...), or Potential(values, space).")
    chosen = recommended_learner(potential) if learner is None else learner
    if chosen == POSTERIOR:
        if changes:
            raise ArgumentError(f"The learner 'posterior' has no constants: leave out {', '.join(sorted(changes))}.")
        as_belief(potential)
        return POSTERIOR, None
    as_potential(potential)
    return chosen if isinstance(chosen, str) else CUSTOM, resolve(chosen, **changes)


CAN_LOCK_IN = (
    "Without a learner, train uses Q-UCB Shaping, which as printed in the paper can lock in: it may keep repeating the "
    "first action it tried for the rest of the run. The counts of your logs are the better input: cs.train(world, "
    "cs.posterior(counts, horizon=..., reward_max=...)), or the option --counts of the command."
)
"""The warning of the default learner for potentials."""


def warn_of_default_learner(learner: Any, potential: Any, stacklevel: int) -> None:
    """Warn if a potential or ceilings came without a learner: the default learner can lock in.

    Args:
        learner: what the caller was given; None stands for the default.
        potential: what the caller was given.
        stacklevel: as for `warnings.warn`, counted from the caller.
    """
    if learner is None and isinstance(potential, (Ceilings, Potential)):
        warnings.warn(CAN_LOCK_IN, ShapingWarning, stacklevel=stacklevel + 1)


def as_belief(potential: Any) -> Posterior | None:
    """Return what the learner "posterior" was given, if it can use it."""
    if not isinstance(potential, (Posterior, type(None))):
        raise ArgumentError(
            "The learner 'posterior' starts from a posterior, not from a potential: pass posterior(counts, ...), or "
            "None to learn without logs."
        )
    return potential


def as_potential(potential: Any) -> Potential | Ceilings | None:
    """Return what a rule was given, if it can use it."""
    if isinstance(potential, Posterior):
        raise ArgumentError(
            "This learner takes a potential: pass posterior.potential(), or take the learner 'posterior'."
        )
    return potential  # type: ignore[no-any-return]
