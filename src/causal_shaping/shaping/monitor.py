"""The monitor: does what an agent sees contradict the ceilings that shape its reward?

`Monitor` tests each step, and `CeilingEvidence` (`env.monitor` of `ShapeReward`) is its report.

**What is tested.** In each backup, a ceiling is the most that any possible outcome distribution of
an action earns, and that of do(x) is possible if the assumptions hold. So for every action

    phi_h(s) >= E_do(x)[ r + discount * phi_{h+1}(s') ],

and the shaped reward of every step, r + discount * phi_{h+1}(s') - phi_h(s), is at most 0 in the
mean, whatever led to the step: an agent that does not see the hidden noise may choose its actions
by anything that it has seen. One return above a ceiling contradicts nothing; many shaped rewards
that are positive on average do.

**How.** The shaped reward cannot fall below -c, where

    c = phi_h(s) - reward_min - discount * min phi_{h+1}(s')      over the allowed successors s'

is known before the step. A gambler who starts with 1, and at each step stakes a fraction f < 1 of
the present wealth, multiplies it by 1 + f * shaped / c. This factor is never negative and at most 1
in the mean, so the wealth is a test supermartingale. So is every average of such wealths with
weights fixed beforehand, and so is every product whose factors belong to different steps. By
Ville's inequality it ever reaches 20 with a probability of at most 1/20: *false alarms happen in at
most 5% of runs, however long these are and whenever somebody looks.*

The evidence is the mean of two such wealths. The first bets the same fraction at every step,
averaged over fractions. The second bets in each cell (s, x) separately: if W_c is the average over
fractions of the wealth from bets on cell c, it is the product over cells of 1 - w + w * W_c,
averaged over w = 1 / (2 C) and w = 1 / (2 sqrt(C)), where C is the number of cells. So ceilings may
be wrong in a few cells or in many, while bets lose in others, where ceilings are loose. All bets
are relative: another unit of reward changes nothing.

**Potentials that bound less.** The first step's ceiling of a finite horizon H, used without step
index, does not bound steps. Neither does the paper's method, nor do ceilings cut by `value_max`.
They bound returns: E[ sum over h < H of discount^h r_h ] <= phi_0(s_0), however the agent acts.
Then each episode is one bet on its return minus phi_0(s_0). If it was truncated or abandoned before
H, the steps left count as the least that they can pay. An infinite-horizon bound of one of these
kinds says nothing about finitely many steps; no bets are made on it.

**Without bets.** There are no bets without `reward_min`. What ceilings exclude outright is an alarm
in any case: a transition outside their support, a reward above `reward_max` or above all that were
seen with this successor, a state outside a complete list, an action outside the space. Plug-in
estimates are tested like all other ceilings: an alarm then says that they are too low here, because
an assumption is wrong or because they are estimates.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from causal_shaping._compile import INLINED, njit, resolved
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray
from causal_shaping.data.potential import Potential
from causal_shaping.data.result import DataFrame, Result, data_frame
from causal_shaping.data.successors import ANYTHING
from causal_shaping.errors import AssumptionWarning
from causal_shaping.shaping.warn import warn_user

ALARM = 20.0
"""The evidence of an alarm: valid ceilings reach it in at most one of 20 runs."""

FRACTIONS = (15 / 16, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128)
"""The stakes, as fractions of the largest one that cannot go bankrupt: large ones find large errors
of ceilings soon, small ones find small errors at all."""

ROUNDING = 1e-9
"""In units of reward: what a shaped reward is lowered by, so that rounding is no evidence."""

MARGIN = 1e-6
"""In units of reward: how far a reward may pass a bound, and the least amount that a bet risks."""

INADMISSIBLE = -2
"""The row of a state and action that does not exist; `ANYTHING` is that of any outcome."""

EVERY_STEP = -1
"""`episode_steps` of a ceiling that bounds steps, not returns."""

NOTHING, VOID, BETS, ACTION, STATE, SUCCESSOR, HIGHEST, PAID = range(8)
"""Why the monitor stopped. `NOTHING`: it did not. `VOID`: a reward below reward_min ended the bets,
which is no alarm. All others are alarms: by evidence, or by an action, a state, a successor or a
reward that the ceilings exclude (`HIGHEST`: above reward_max, `PAID`: with this successor)."""

EXCLUDED = {
    ACTION: "they do not count this action",
    STATE: "they say that no other states exist",
    SUCCESSOR: "this cannot follow",
    HIGHEST: "this is more than their reward_max",
    PAID: "this is more than was ever paid with this successor",
}
"""Why the ceilings exclude a step."""

TESTED = {"steps": "shaped rewards of steps", "episodes": "returns of episodes"}
"""What bets are made on; without any, ceilings are tested by what they exclude outright."""

CLAIMS = ("discount", "reward_min", "reward_max", "unit", "lowest_return")
"""Of the ceilings: discount, bounds of rewards (NaN if unknown), unit (the range of rewards and
potentials), the least return of an episode."""

COUNTERS = ("episode_steps", "complete", "code", "steps", "h", "state", "action", "successor")
"""Of the ceilings: `episode_steps`, whether their list of states is complete. Of the tests: why
they stopped, steps so far, and the step, state, action and successor at which they stopped."""

RUN = np.dtype(
    [(name, "f8") for name in (*CLAIMS, "evidence", "reward")]
    + [(name, "i8") for name in COUNTERS]
    + [("whole", "f8", len(FRACTIONS)), ("weights", "f8", 2), ("products", "f8", 2)]
)
"""The numbers of a run. Beside those above: the evidence, the reward at which the monitor stopped,
the wealth of bets on all steps alike, two weights of a cell and for each the product over cells."""

EPISODE = np.dtype([("earned", "f8"), ("factor", "f8"), ("steps", "i8"), ("first", "i8")])
"""Of an episode that is played: return so far, discount of its next reward, steps, first state."""


@dataclass(frozen=True, repr=False)
class CeilingEvidence(Result):
    """The report of the monitor of ceilings.

    Attributes:
        evidence: against the ceilings, an e-value: 1 at first; it ever reaches 20 with a
            probability of at most 5% if they hold; inf if something happened that they exclude.
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
        shown = f"{self.evidence:.3g} of {ALARM:g} after {self.steps:,} steps"
        return f"CeilingEvidence({shown}, alarm_step={self.alarm_step})"

    def summary(self) -> str:
        """Return the report in words."""
        if self.alarm is not None:
            return self.alarm
        words = f"In {self.steps:,} steps nothing happened that the ceilings exclude."
        if self.tested not in TESTED:
            return f"{words} Nothing else was tested."
        words += f" Evidence against them from {TESTED[self.tested]}: {self.evidence:.3g}"
        return f"{words}; the alarm is at {ALARM:g}."

    def to_pandas(self) -> DataFrame:
        """Return one row with all attributes."""
        return data_frame([vars(self)])


class Tables(NamedTuple):
    """What ceilings claim and what the monitor has seen, for compiled code; changed in place.

    The last state, -1, is one that the ceilings do not know; the last but one stands for an end.
    """

    run: npt.NDArray[Any]  # [1] of `RUN`
    episodes: npt.NDArray[Any]  # [environments] of `EPISODE`
    phi: FloatArray  # [layers, states + 2], a last layer of 0 if it has steps
    lowest: FloatArray  # [layers, rows + 1], the least phi of a row's successors; `ANYTHING` last
    wealth: FloatArray  # [states + 2, actions, fractions], of bets on each state and action
    row: LongArray  # [states + 2, actions], of the allowed successors
    first: LongArray  # [rows + 1], see `AllowedSuccessors`
    after: IntArray  # [successors]
    highest: FloatArray  # [successors]
    terminal: BoolArray  # [states + 2]


class Monitor:
    """Tests a ceiling potential step by step, in one environment or in several side by side.

    Attributes:
        tables: what the ceilings claim and what was seen so far, for `monitor_step`.
        lowest_reward: `reward_min` of the ceilings, NaN without one.
    """

    def __init__(self, potential: Potential, by_action: bool = True, environments: int = 1) -> None:
        """Take a ceiling, whether actions are known by position, and how many environments."""
        self.potential, self.by_action, self._warned_of = potential, by_action, NOTHING
        self.tables = _tables(potential, by_action, environments)
        self.lowest_reward = float(self.tables.run["reward_min"][0])

    @functools.cached_property
    def step(self) -> Callable[..., float]:
        """`monitor_step`, compiled for these tables: test a step, return the evidence so far."""
        step = resolved(monitor_step, self.tables, 0, 0, 0, 0, 0.0, 0, False, False)
        return functools.partial(step, self.tables)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the compiled function out of copies: they look it up again."""
        return {name: value for name, value in vars(self).items() if name != "step"}

    @property
    def evidence(self) -> float:
        """The evidence so far."""
        return float(self.tables.run["evidence"][0])

    @property
    def alarmed(self) -> bool:
        """Whether there was an alarm."""
        return bool(self.tables.run["code"][0] > VOID)

    def tell(self, consequence: str = "") -> None:
        """Warn of an alarm, with its consequence, and of a reward below reward_min, once each."""
        code = self.tables.run["code"][0]
        if code != self._warned_of:
            self._warned_of = code
            warn_user(f"{self._words()} {consequence * self.alarmed}".strip(), AssumptionWarning)

    def report(self) -> CeilingEvidence:
        """Return the evidence so far."""
        tested = {None: "steps", 0: "exclusions"}.get(self.potential.episode_steps, "episodes")
        if self.potential.reward_min is None:
            tested = "exclusions"
        report = CeilingEvidence(self.evidence, int(self.tables.run["steps"][0]), tested)
        if self.alarmed:
            report = replace(report, alarm=self._words(), alarm_step=report.steps)
        return report

    def _words(self) -> str:
        """Return what the monitor stopped at: what was seen, what it contradicts, what to do."""
        run, potential = self.tables.run[0], self.potential
        if run["code"] == VOID:
            return (
                f"A step paid {run['reward']:.6g}, less than reward_min, "
                f"{potential.reward_min:.6g}. No more bets are made against the ceilings. Compute "
                "them with a lower reward_min."
            )
        if run["code"] == BETS:
            wealth = self.tables.wealth.sum(axis=-1)
            most = self._cell_name(*divmod(int(wealth.argmax()), wealth.shape[1]))
            seen = (
                "The agent earns more than the ceilings allow: the evidence against them is "
                f"{self.evidence:.3g} after {run['steps']:,} steps, and it reaches {ALARM:g} in at "
                f"most 5% of runs if they hold. Most of it comes from {most}."
            )
        else:
            seen = (
                f"The ceilings exclude what the agent saw after {run['steps']:,} steps (step "
                f"{run['h']} of an episode): {self._cell_name(run['state'], run['action'])} paid "
                f"{run['reward']:.6g} and led to {self._state_name(run['successor'])}, but "
                f"{EXCLUDED[int(run['code'])]}."
            )
        estimates = ""
        if any("plug-in" in assumption for assumption in potential.assumptions):
            estimates = " or they are plug-in estimates,"
        return (
            f"{seen} The ceilings are too low here. Either an assumption is wrong (the online "
            "world is not the one that was logged, a hidden cause lasts over the episode, a source "
            f"is more confounded than declared, the support lacks an outcome),{estimates} or this "
            "is one of the rare runs in which they fail by chance. Shape with a potential of 0, or "
            "compute ceilings that assume less: a confidence of 0.95, support 'any', a higher "
            "confounding, the suspected source left out."
        )

    def _state_name(self, state: int) -> str:
        states = self.potential.space.states
        if 0 <= state < len(states):
            return f"state {states[state]!r}"
        return {len(states): "an end"}.get(state, "a state that they do not know")

    def _cell_name(self, state: int, action: int) -> str:
        """Return the name of a state and action, as far as the tables tell actions apart."""
        if not self.by_action or action < 0:
            return self._state_name(state)
        return f"action {self.potential.space.actions[action]!r} in {self._state_name(state)}"


def _tables(potential: Potential, by_action: bool, environments: int) -> Tables:
    """Return what a ceiling claims, and nothing seen so far."""
    space, allowed, tested = potential.space, potential.successors, potential.episode_steps
    states, actions = space.is_admissible.shape
    # An end is worth 0; states that the potential does not know are last, as position -1.
    phi = np.insert(np.array(potential.rows()), states, 0.0, axis=1)
    terminal = np.append(space.is_terminal, [False, False])
    # Lists of allowed successors; without any, everything may follow.
    listed, first = np.full((states, actions), ANYTHING), np.zeros(1, dtype=np.int64)
    after, highest = np.zeros(0, dtype=np.int32), np.zeros(0)
    if allowed is not None:
        lists = allowed.row, allowed.first, allowed.after, allowed.highest
        listed, first, after, highest = map(np.array, lists)  # copies that can be written to

    # Which row of allowed successors holds for each state and action.
    row = np.where(space.is_admissible, listed, INADMISSIBLE).astype(np.int64)
    row[space.is_terminal] = ANYTHING
    if not by_action:  # what is allowed after a state only if it is the same for all its actions
        same = (listed == listed[:, :1]).all(axis=1)
        row = np.where(same, listed[:, 0], ANYTHING)[:, None].astype(np.int64)
    cells = int((row[~space.is_terminal] != INADMISSIBLE).sum()) + 1
    row = np.append(row, np.full((2, row.shape[1]), ANYTHING), axis=0)

    # The least phi that can follow: a bet must not lose more than there is.
    lowest = np.zeros((len(phi), len(first)))
    lowest[:, -1] = np.fmin.reduce(phi, axis=1)
    rows = np.flatnonzero(np.diff(first))
    if len(rows):
        lowest[:, rows] = np.minimum.reduceat(phi[:, after], first[rows], axis=1)

    # None becomes NaN, which no reward is above or below.
    bounds = np.array([potential.reward_min, potential.reward_max, 0.0], dtype=np.float64)
    run = np.zeros(1, dtype=RUN)
    run["discount"], run["complete"] = potential.discount, space.complete
    run["reward_min"], run["reward_max"], _ = bounds
    run["unit"] = np.ptp(phi[np.isfinite(phi)]) + np.nanmax(bounds) - np.nanmin(bounds) or 1.0
    run["evidence"], run["whole"], run["products"] = 1.0, 1.0, 1.0
    run["weights"] = 0.5 / cells, 0.5 / math.sqrt(cells)
    run["episode_steps"] = EVERY_STEP
    if tested is not None:
        run["episode_steps"] = tested
    if tested:  # the least return: of one step, or of all of them if they can cost something
        run["lowest_return"] = np.cumsum(bounds[0] * potential.discount ** np.arange(tested)).min()
    episodes = np.zeros(environments, dtype=EPISODE)
    wealth = np.ones((*row.shape, len(FRACTIONS)))
    return Tables(run, episodes, phi, lowest, wealth, row, first, after, highest, terminal)


@njit(**INLINED)
def monitor_step(tables, i, h, s, x, reward, after, terminated, truncated):  # type: ignore[no-untyped-def]
    """Test a step of environment i and return the evidence so far.

    Args:
        tables: what the ceilings claim and what was seen so far.
        i: the number of the environment.
        h: the number of the step in its episode, from 0.
        s: the position of the state in the potential's space, -1 if unknown.
        x: the position of the action, -1 if unknown, 0 if actions are not told apart.
        reward: what the step paid, unshaped.
        after: the position of the state that followed, -1 if unknown.
        terminated: whether the episode ended there.
        truncated: whether the episode was cut there.
    """
    run = tables.run[0]
    if run.code > VOID:  # an alarm is final
        return run.evidence
    run.steps += 1
    ended = terminated or tables.terminal[after]
    to = len(tables.terminal) - 2 if ended else after
    row = INADMISSIBLE
    if x >= 0:
        row = tables.row[s, x]
    # What is excluded outright is an alarm; everything else is a bet.
    code = _excluded(tables, row, s, reward, to)
    if code != NOTHING:
        run.evidence = np.inf
    elif run.code == NOTHING and run.reward_min == run.reward_min:  # it is known
        if reward < run.reward_min - MARGIN * run.unit:
            code = VOID
        elif run.episode_steps == EVERY_STEP:
            _bet_on_step(tables, row, h, s, x, reward, to)
        elif run.episode_steps > 0:
            _bet_on_episode(tables, i, h, s, reward, ended, truncated)
        if run.evidence >= ALARM:
            code = BETS
    if code != NOTHING:
        run.code, run.reward, run.h = code, reward, h
        run.state, run.action, run.successor = s, x, to
    return run.evidence


@njit(**INLINED)
def _excluded(tables, row, s, reward, to):  # type: ignore[no-untyped-def]
    """Return why the ceilings exclude a step, or `NOTHING`."""
    run = tables.run[0]
    margin = MARGIN * run.unit
    if row == INADMISSIBLE:
        return ACTION
    if reward > run.reward_max + margin:
        return HIGHEST
    if run.complete and (s < 0 or to < 0):
        return STATE
    if row == ANYTHING:
        return NOTHING
    for o in range(tables.first[row], tables.first[row + 1]):
        if tables.after[o] == to:
            if reward > tables.highest[o] + margin:
                return PAID
            return NOTHING
    return SUCCESSOR


@njit(**INLINED)
def _bet_on_step(tables, row, h, s, x, reward, to):  # type: ignore[no-untyped-def]
    """Bet that the shaped reward of a step is positive in the mean."""
    run, layer, below = tables.run[0], 0, 0
    if len(tables.phi) > 1:
        layer, below = h, h + 1
        if below >= len(tables.phi):  # the ceilings say nothing of steps beyond their horizon
            return
    phi, rounding = tables.phi[layer, s], ROUNDING * run.unit
    shaped = reward + run.discount * tables.phi[below, to] - phi - rounding
    risk = phi - run.reward_min - run.discount * tables.lowest[below, row]
    if shaped == shaped:  # where unseen states have no value, nothing is claimed about them
        _bet(tables, s, x, shaped / max(risk, MARGIN * run.unit))


@njit(**INLINED)
def _bet_on_episode(tables, i, h, s, reward, ended, truncated):  # type: ignore[no-untyped-def]
    """Bet, when an episode ends, that returns exceed the first state's potential in the mean."""
    most, episode = tables.run[0].episode_steps, tables.episodes[i]
    if h == 0:
        if episode.steps > 0:  # the last episode was abandoned
            _close_episode(tables, i, False)
        episode.earned, episode.factor, episode.steps, episode.first = 0.0, 1.0, 0, s
    if h == episode.steps and h < most:
        episode.earned += episode.factor * reward
        episode.factor *= tables.run[0].discount
        episode.steps += 1
        if ended or truncated or h + 1 == most:
            _close_episode(tables, i, ended)
            episode.steps = 0


@njit(**INLINED)
def _close_episode(tables, i, ended):  # type: ignore[no-untyped-def]
    """Bet on the return of an episode; all steps that it lacks might have paid the least."""
    run, episode = tables.run[0], tables.episodes[i]
    earned, factor = episode.earned, episode.factor
    if not ended:
        for _ in range(episode.steps, run.episode_steps):
            earned += factor * min(run.reward_min, 0.0)
            factor *= run.discount
    phi = tables.phi[0, episode.first]
    if phi == phi:
        won = earned - phi - ROUNDING * run.unit
        _bet(tables, episode.first, 0, won / max(phi - run.lowest_return, MARGIN * run.unit))


@njit(**INLINED)
def _bet(tables, s, x, gain):  # type: ignore[no-untyped-def]
    """Bet each fraction, on the cell and on all steps; `gain` >= -1, and at most 0 in the mean."""
    run, bets = tables.run[0], len(FRACTIONS)
    before, after, whole = 0.0, 0.0, 0.0
    for k in range(bets):
        factor = 1.0 + FRACTIONS[k] * gain
        before += tables.wealth[s, x, k]
        tables.wealth[s, x, k] *= factor
        run.whole[k] *= factor
        after += tables.wealth[s, x, k]
        whole += run.whole[k]
    # The factor of this cell in the product over cells is replaced.
    by_cell = 0.0
    for j in range(2):
        weight = run.weights[j]
        new, old = 1 - weight + weight * after / bets, 1 - weight + weight * before / bets
        run.products[j] *= new / old
        by_cell += run.products[j]
    run.evidence = (whole / bets + by_cell / 2) / 2
