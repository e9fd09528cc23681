"""The formula of shaping: r + discount * phi(s') - phi(s), where phi is 0 if nothing follows.

These are plain functions of numbers or arrays, which the learners compile. Shaping changes the
discounted return by the potential of the last state minus that of the first, whatever happened in
between. So the optimal policies stay the same where the potential of the last state is 0: after
termination, with a potential that has steps, or with "terminal" time limits. At a time limit with
"bootstrap" it stays; the optimal policies are preserved there for an agent that bootstraps from
V(s'), since shaping lowers V(s') by phi(s').
"""

from __future__ import annotations

from typing import Any

TIME_LIMITS = ("bootstrap", "terminal")
"""What follows a step at the time limit: the state where the episode was cut, or nothing."""


def shaped_reward(reward: Any, discount: Any, before: Any, after: Any) -> Any:
    """Return the shaped reward of a step from phi of its two states; with reward 0, the shaping."""
    return reward - before + discount * after


def is_final(terminated: Any, truncated: Any, bootstrap: bool) -> Any:
    """Return whether nothing follows a step: it terminated, or was truncated without bootstrap."""
    return terminated if bootstrap else terminated | truncated
