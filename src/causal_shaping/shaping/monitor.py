"""The monitor: does what an agent sees contradict the ceilings that shape its reward?

- `CeilingEvidence`: what the monitor found so far; `env.monitor` of `ShapeReward`.

**What is tested.** In each backup a ceiling is the most that any possible outcome distribution of an action earns, and
that of do(x) is possible if the assumptions hold. So for every action

    phi_h(s) >= E_do(x)[ r + discount * phi_{h+1}(s') ],

and the shaped reward of every step, r + discount * phi_{h+1}(s') - phi_h(s), is at most 0 in the mean, whatever led to
the step: an agent that does not see the hidden noise may choose its actions by anything that it has seen. One return
above a ceiling contradicts nothing; many shaped rewards that are positive on average do.

**How.** The shaped reward cannot fall below -c, with c = phi_h(s) - reward_min - discount * min phi_{h+1}(s') over the
allowed successors, a number that is known before the step. A gambler who starts with 1 and each time stakes a fraction
f < 1 of what is left multiplies that by 1 + f * shaped / c, which is never negative and at most 1 in the mean: his
wealth is a test supermartingale. So is every average of such wealths with weights fixed beforehand, and so is every
product whose factors belong to different steps. By Ville's inequality it ever reaches 20 with probability 1/20 at most:
*false alarms happen in at most 5% of runs, however long these are and whenever they are looked at.*

The evidence is the mean of two such wealths. One bets the same fraction at every step, averaged over fractions. The
other bets in each cell (s, x) on its own: with W_c the average over fractions of the wealth of bets on cell c, it is
the product over cells of 1 - w + w * W_c, for w = 1 / (2 C) and 1 / (2 sqrt(C)), averaged, where C is the number of
cells: ceilings are wrong in a few cells, or in many, while they are loose in others, where bets lose. All is relative:
other units of reward change nothing.

**Potentials that bound less.** The first step's ceiling of a finite horizon H, used without step index, does not bound
steps, nor does the paper's method, nor do ceilings cut by `value_max`. They bound returns: E[ sum over h < H of
discount^h r_h ] <= phi_0(s_0) for every way to act. Then each episode is one bet: its return minus phi_0(s_0), with the
least that the steps left can pay if it was truncated or given up before H. An infinite-horizon bound of one of these
kinds says nothing of what finitely many steps earn; it is not bet on.

**Without bets.** No bets are made without `reward_min`. What ceilings exclude outright is an alarm in any case: a
transition outside their support, a reward above `reward_max` or above all that this successor was seen with, a state
outside a complete list, an action outside the space. Plug-in estimates are tested like all other ceilings: an alarm
then says that they are too low here, because an assumption is wrong or because they are estimates.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import resolved
from causal_shaping.data.potential import Potential
from causal_shaping.data.result import DataFrame, Result, data_frame
from causal_shaping.data.successors import ANYTHING, AllowedSuccessors
from causal_shaping.errors import AssumptionWarning
from causal_shaping.shaping import _monitor as kernel
from causal_shaping.shaping._monitor import ALARM, Packed, monitor_step

TESTED = {"steps": "shaped rewards of steps", "episodes": "returns of episodes", "exclusions": "exclusions alone"}
"""What evidence is made of: bets on steps or on episodes, or nothing but what ceilings exclude outright."""

WHY = (
    "Either an assumption is wrong (the online world is not the one that was logged, a hidden cause lasts over the "
    "episode, a source is more confounded than declared, the support lacks an outcome)"
)


@dataclass(frozen=True, repr=False)
class CeilingEvidence(Result):
    """What the monitor of ceilings found so far.

    Attributes:
        evidence: against the ceilings, an e-value: 1 at first, 20 or more with probability 5% at most if they hold;
            inf if something happened that they exclude.
        steps: the number of steps that were tested.
        tested: "steps", "episodes" or "exclusions", see `causal_shaping.shaping.monitor`.
        alarm: what contradicts the ceilings, in words; None if nothing does.
        alarm_step: the number of steps at the alarm; None without one.
    """

    evidence: float
    steps: int
    tested: str
    alarm: str | None = None
    alarm_step: int | None = None

    def __repr__(self) -> str:
        what = "no alarm" if self.alarm_step is None else f"alarm after {self.alarm_step:,}"
        return f"CeilingEvidence({self.evidence:.3g} of {ALARM:g} after {self.steps:,} steps, {what})"

    def summary(self) -> str:
        """Return what was found, in words."""
        if self.alarm is not None:
            return self.alarm
        seen = f"In {self.steps:,} steps nothing happened that the ceilings exclude"
        if self.tested == "exclusions":
            return f"{seen}. Nothing else was tested."
        return (
            f"{seen}. Evidence against them from {TESTED[self.tested]}: {self.evidence:.3g}; the alarm is at {ALARM:g}."
        )

    def to_pandas(self) -> DataFrame:
        """Return one row with what was found."""
        return data_frame([vars(self)])


class Monitor:
    """Tests a ceiling potential step by step, in one environment or in several side by side.

    Attributes:
        packed: what the ceilings claim and what was seen so far, for `monitor_step`, which changes it.
        lowest_reward: `reward_min` of the ceilings, -inf without one. There is nothing to tell before a reward below
            it, or evidence of `ALARM`.
    """

    def __init__(self, potential: Potential, *, by_action: bool = True, environments: int = 1) -> None:
        """Args: a ceiling; whether actions are known by their position in its space; the number of environments."""
        self.potential, self.by_action, self._told = potential, by_action, kernel.NOTHING
        self.packed = _packed(potential, by_action, environments)
        self.lowest_reward = -math.inf if potential.reward_min is None else potential.reward_min
        self._integers = self.packed.integers

    @functools.cached_property
    def test(self) -> Callable[..., float]:
        """The compiled function behind `step`, which takes the environment first: a wrapper calls it at each step."""
        step = resolved(monitor_step, *self.packed, 0, 0, 0, 0, 0.0, 0, False, False)
        return functools.partial(step, *self.packed)

    def __getstate__(self) -> dict[str, Any]:
        return {name: held for name, held in vars(self).items() if name != "test"}  # compiled code stays here

    @property
    def code(self) -> int:
        """Why the monitor stopped, `NOTHING` if it did not."""
        return int(self.packed.integers[kernel.CODE])

    @property
    def evidence(self) -> float:
        """The evidence so far."""
        return float(self.packed.reals[kernel.EVIDENCE])

    @property
    def alarmed(self) -> bool:
        """Whether there was an alarm."""
        return self.code not in (kernel.NOTHING, kernel.VOID)

    def tell(self, stacklevel: int, ended: str = "") -> None:
        """Warn of an alarm, and of a reward below reward_min, once each; `ended` says what an alarm led to."""
        if self._integers[kernel.CODE] != self._told:
            self._told = self.code
            words = f"{self._words()} {ended}" if ended and self.alarmed else self._words()
            warnings.warn(words, AssumptionWarning, stacklevel=stacklevel + 1)

    def report(self) -> CeilingEvidence:
        """Return what was found so far."""
        by_steps = self.potential.episode_steps
        tested = "steps" if by_steps is None else "episodes" if by_steps else "exclusions"
        steps, alarmed = int(self.packed.integers[kernel.STEPS]), self.alarmed
        return CeilingEvidence(
            evidence=self.evidence,
            steps=steps,
            tested="exclusions" if self.potential.reward_min is None else tested,
            alarm=self._words() if alarmed else None,
            alarm_step=steps if alarmed else None,
        )

    def _words(self) -> str:
        """Return what the monitor stopped at: what was seen, what it contradicts, what to do."""
        code, steps, h, state, action, to = self.packed.integers[:6].tolist()
        reward, space = float(self.packed.reals[kernel.REWARD]), self.potential.space
        if code == kernel.VOID:
            return (
                f"A step paid {reward:.6g}, less than reward_min, {self.potential.reward_min:.6g}: the monitor makes "
                "no more bets against the ceilings. Compute them with a lower reward_min."
            )
        before = "a state that they do not know" if state < 0 else f"state {space.states[state]!r}"
        acted = f"action {space.actions[action]!r} in {before}" if self.by_action and action >= 0 else before
        after = "a state that they do not know" if to < 0 else "an end"
        if 0 <= to < len(space.states):
            after = f"state {space.states[to]!r}"
        when = f"after {steps:,} steps (step {h} of an episode)"
        if code == kernel.BETS:
            begin, end = self.packed.integers[[kernel.WEALTH, kernel.WHOLE]]
            wealth = self.packed.reals[begin:end].reshape(-1, len(kernel.FRACTIONS)).sum(axis=1)
            state, action = divmod(int(wealth.argmax()), int(self.packed.integers[kernel.ACTIONS]))
            where = "states that they do not know" if state == len(space.states) else f"state {space.states[state]!r}"
            if self.by_action and self.potential.episode_steps is None:
                where = f"action {space.actions[action]!r} in {where}"
            seen = (
                f"The agent earns more than the ceilings allow: the evidence against them is "
                f"{self.evidence:.3g} after {steps:,} steps, and it reaches {ALARM:g} in at most 5% of runs if "
                f"they hold. Most of it comes from {where}."
            )
        elif code == kernel.ACTION:
            seen = f"The agent took an action that the ceilings do not count, in {before}, {when}."
        elif code == kernel.HIGHEST:
            most = self.potential.reward_max
            seen = f"A step paid {reward:.6g}, more than the ceilings' reward_max, {most:.6g}: {acted}, {when}."
        elif code == kernel.STATE:
            seen = f"The agent met a state that the ceilings say does not exist, {when}."
        elif code == kernel.SUCCESSOR:
            seen = f"The agent saw what the ceilings exclude: {after} followed {acted}, {when}."
        else:
            seen = f"The agent saw what the ceilings exclude: {acted} paid {reward:.6g} and led to {after}, {when}."
        estimates = (
            " or they are plug-in estimates," if any("plug-in" in one for one in self.potential.assumptions) else ""
        )
        return (
            f"{seen} The ceilings are too low here. {WHY},{estimates} or this is one of the rare runs in which they "
            "fail by chance. Shape with a potential of 0, or compute ceilings that assume less: a confidence of 0.95, "
            "support 'any', a higher confounding, the suspected source left out."
        )


def _packed(potential: Potential, by_action: bool, environments: int) -> Packed:
    """Return what a ceiling claims, and nothing seen so far."""
    phi, space = np.atleast_2d(potential._table), potential.space
    states, actions = space.is_admissible.shape
    allowed = potential.successors
    if allowed is None:
        free, none = np.full((states, actions), ANYTHING, dtype=np.int32), np.zeros(0)
        allowed = AllowedSuccessors(free, np.zeros(1, dtype=np.int64), none.astype(np.int32), none)
    row = np.where(space.is_admissible, allowed.row, kernel.INADMISSIBLE)
    row[space.is_terminal] = ANYTHING
    if not by_action:  # what is allowed after a state only if it is the same for all of its actions
        row = np.where((allowed.row == allowed.row[:, :1]).all(axis=1), allowed.row[:, 0], ANYTHING)[:, None]
    row = np.append(row, np.full((1, row.shape[1]), ANYTHING), axis=0)  # of a state that is not known

    following = phi.copy()
    following[:, -1] = 0.0  # after an end
    lowest = np.empty((len(phi), len(allowed.first)))
    lowest[:, -1] = np.fmin(np.fmin.reduce(phi, axis=1), 0.0)
    held = np.flatnonzero(np.diff(allowed.first))
    if len(held):
        lowest[:, held] = np.minimum.reduceat(following[:, allowed.after], allowed.first[held], axis=1)

    least, most = potential.reward_min, potential.reward_max
    ends = [bound for bound in (least, most) if bound is not None]
    unit = float(np.ptp(np.append(phi[np.isfinite(phi)], 0.0)) + np.ptp([*ends, 0.0]))
    cells = int((row[:states][~space.is_terminal] != kernel.INADMISSIBLE).sum()) + 1
    bets, episode_steps = len(kernel.FRACTIONS), -1 if potential.episode_steps is None else potential.episode_steps
    bounds = (-math.inf if least is None else least, math.inf if most is None else most)
    numbers = (1.0, 0.0, potential.discount, *bounds, unit or 1.0, 0.5 / cells, 0.5 / math.sqrt(cells), 1.0, 1.0)
    tables = (phi, lowest, allowed.highest, np.ones(row.size * bets), np.ones(bets), np.zeros(4 * environments))
    lists = (row, allowed.first, allowed.after, np.append(space.is_terminal, False))
    sizes = (states, row.shape[1], len(phi), len(allowed.first) - 1, episode_steps, least is not None, space.complete)
    at = [*_begins(tables, len(numbers)), *_begins(lists, kernel.FIRST_LIST)]
    reals = np.concatenate([np.ravel(part).astype(np.float64) for part in (numbers, *tables)])
    integers = np.concatenate([np.ravel(part).astype(np.int64) for part in ([0] * 6, sizes, at, *lists)])
    return Packed(reals, integers)


def _begins(parts: Sequence[npt.NDArray[Any]], first: int) -> list[int]:
    """Return where arrays begin that are laid one after the other."""
    return [first + sum(part.size for part in parts[:i]) for i in range(len(parts))]
