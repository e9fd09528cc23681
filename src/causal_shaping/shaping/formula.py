"""The formula: r + discount * phi(s') - phi(s), with phi = 0 where nothing follows.

Plain functions of numbers or arrays, which the learners compile. Discounted returns change by the potential of the
last state minus that of the first, whatever happened in between. So the optimal policies stay the same where the last
one is 0: after termination, with a potential that has steps, or with "terminal" time limits. Where it stays, at a time
limit with "bootstrap", they do for an agent that adds the value of that state, which is less by as much.
"""

from __future__ import annotations

from typing import Any

TIME_LIMITS = ("bootstrap", "terminal")
"""What follows a step at the time limit: the state where the episode was cut, or nothing."""


def shaped_reward(reward: Any, discount: Any, before: Any, after: Any) -> Any:
    """Return the shaped reward of a step; `before` and `after` are phi of the two states. Of reward 0: the shaping."""
    return reward - before + discount * after


def is_final(terminated: Any, truncated: Any, bootstrap: bool) -> Any:
    """Return whether nothing follows a step: it terminated, or was truncated and the rule is not to bootstrap there."""
    return terminated if bootstrap else terminated | truncated
