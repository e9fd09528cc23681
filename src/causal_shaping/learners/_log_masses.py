"""What logs prove of one step, for a model-based rule.

Ceilings are computed once, from the logs alone. The masses behind them, those of each outcome of do(x) that are proven,
remain true while a learner finds out what states are worth: one more backup with its own optimistic values

    Q(s, x) <= w - sum over o of  max_i L_i(o) * (w - r(o) - discount * V(s'(o)))

bounds actions that it has hardly tried, and gets tighter as it learns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causal_shaping.bounds._masses import Evidence, Masses
from causal_shaping.bounds.results import Ceilings
from causal_shaping.bounds.support import unrestricted_cells
from causal_shaping.data.arrays import BoolArray, LongArray
from causal_shaping.data.counts import Counts
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError


class LogMasses(NamedTuple):
    """What is proven of the outcomes of each (s, x), with states and actions as positions in the learner's space."""

    known: bool  # False if there are no logs to go by
    begin: LongArray  # [states], where the cells of each state begin
    end: LongArray  # [states], where they end
    masses: Masses
    unrestricted: BoolArray  # [cells], whether free mass may do anything there, not only what was seen to follow
    by_action: bool  # whether what was seen to follow means after the action, or after the state
    reward_max: float
    unknown: float  # the value of a state that no log holds; never more than an end if there is none


def no_log_masses() -> LogMasses:
    """Return what a learner without counts knows: nothing."""
    none, cells = np.zeros(0), np.zeros(0, dtype=np.int32)
    cell = np.zeros(0, dtype=np.int64)
    masses = Masses(none, none, cells, cells, cell, none, cells, np.zeros(0, np.uint16), none, none, none, none)
    return LogMasses(False, cell, cell, masses, np.zeros(0, dtype=np.bool_), False, 0.0, 0.0)


def log_masses(counts: Counts, ceilings: Ceilings, space: Space) -> LogMasses:
    """Return what counts prove of one step, with the settings of the ceilings that were computed from them.

    Upper limits of mass, which come with a finite confounding, are left out: that is valid, and less tight.

    Raises:
        ArgumentError: if the ceilings are not of these counts, or cannot be computed again from them.
    """
    if counts.checksum != ceilings.counts_checksum:
        raise ArgumentError("The counts are not those that the ceilings were computed from. Merge all sources first.")
    if ceilings.method != "joint" or ceilings.support == "given" or counts.step is not None:
        raise ArgumentError(
            "To plan with counts, pool their steps, and compute ceilings by method='joint' with support 'observed', "
            "'observed-action' or 'any'."
        )
    unrestricted = unrestricted_cells(counts, ceilings)
    masses = Evidence(counts, ceilings, ceilings.SIDE).masses()
    states, actions = counts.space.positions(space)
    if len(states) != len(counts.space.states):
        raise ArgumentError("The counts have states that the learner does not know.")
    # From positions in the counts' space to those in the learner's; an end keeps its own.
    state, action = np.argsort(states).astype(np.int32), np.argsort(actions).astype(np.int32)
    return LogMasses(
        known=True,
        begin=np.searchsorted(masses.state, states),
        end=np.searchsorted(masses.state, states, side="right"),
        masses=masses._replace(
            state=state[masses.state],
            action=action[masses.action],
            after=np.append(state, np.int32(len(states)))[masses.after],
            rest=np.zeros(0),
            upper=np.zeros(0),
        ),
        unrestricted=unrestricted.at()[masses.state, masses.action],
        by_action=unrestricted.by_action,
        reward_max=ceilings.reward_bound,
        unknown=0.0 if counts.space.complete or space.complete else float(np.max(ceilings.vacuous_values)),
    )
