"""What a learner does with a step: Q-UCB and Q-UCB Shaping, one rule with its constants laid open.

The rule, for a step from s by x with reward y to s' (algorithms 1 and 3 of the paper; h counts from 0):

    t          = N_h(s, x) <- N_h(s, x) + 1
    y'         = y + discount * phi_{h+1}(s') - phi_h(s)
    Q_h(s, x) <- (1 - alpha_t) Q_h(s, x) + alpha_t (y' + discount * V_{h+1}(s') + b_t),    alpha_t = (H + 1) / (H + t)
    V_h(s)    <- min(clip_h(s), max_x Q_h(s, x))

A model-based rule counts what followed instead, and after each episode plans with it, optimistically (UCBVI, Azar et
al. 2017): Q_h(s, x) = min(initial, mean reward + discount * mean V_{h+1} + b_t), with V clipped as above. It can also
plan with what logs prove of one step, a third bound in that minimum: see `causal_shaping.learners._log_masses`.

- `Rule`: every constant, with its default and where it comes from.
- `PRESETS`: the rules by name.
- `Setting`: a rule made ready for a problem: tables and numbers for the kernels `update`, `record` and `plan`.
"""

from __future__ import annotations

import math
import numbers
import warnings
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from causal_shaping._compile import njit
from causal_shaping.bounds._joint import add_free_mass, backup_state
from causal_shaping.bounds.ceilings import provably_suboptimal
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.data.arrays import BoolArray, FloatArray
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, ShapingWarning

BONUS_SCALES = ("horizon", "phi-max", "span")
CLIPS = ("horizon", "potential", "zero", "none")
INITIALS = ("horizon", "zero", "potential", "ceilings")
TIME_LIMITS = ("bootstrap", "terminal")
PLANNING_SWEEPS, PLANNING_TOLERANCE, RECOMMENDING_TOLERANCE = 1000, 1e-5, 1e-9
"""Sweeps of a plan without step index end when nothing changes by more than this, or after so many; an episode changes
little, so that sweeps from the last plan's values are few. The plan that is recommended in the end is more exact."""


@dataclass(frozen=True)
class Rule:
    """The constants of a learner.

    Attributes:
        c: the factor of the bonus; 4 in the paper's experiments.
        p: the chance of failure inside iota = log(S X T / p); 0.1 in the paper's experiments. S counts the states that
            are not terminal, T the steps of the budget.
        initial: the table that learning starts from: "horizon", H as in Q-UCB; "zero", as in Q-UCB Shaping; "ceilings",
            the ceiling of each action, under shaping minus the potential of its state (potential-based advice);
            "potential", the potential of the state in place of that; or a number.
        bonus: its scale: "horizon", b_t = c sqrt(H^3 iota / t) as in Q-UCB; "phi-max", c sqrt(H phi_m^2 iota / t) as in
            Q-UCB Shaping, phi_m the largest potential, terminal states counting 0; "span", the same with the highest
            ceiling minus the lowest floor in place of phi_m, 0 after the end among them, which keeps optimism for any
            sign where rewards spread by at most c - 1 times that; a number B, b_t = B / sqrt(t).
        clip: the most that V can be: "horizon", H as in Q-UCB; "potential", phi as in Q-UCB Shaping; "zero", which is
            valid and tighter under a potential that is a ceiling; "none".
        cap_at_initial: Q never rises above its initial value, so that no bonus can make a tried action look better than
            an untried one; and of equally good actions the one that was tried least is taken, otherwise the first.
        rate_offset: the k of the learning rate alpha_t = (k + 1) / (k + t), from 0 for plain averages up.
            None for H, as in Jin et al. (2018).
        time_limit: what follows a cut without step index: "bootstrap" takes V and phi of the state where it was cut,
            "terminal" takes 0. With step index nothing follows the last step.
        shaped: whether the potential shapes the reward.
        model_based: plan with what was counted instead of learning Q from each step.
        prune: never try an action that ceilings and floors prove to be suboptimal, where both are given.
        use_log_masses: plan also with what the logs prove of one step (see `learners._log_masses`): needs the counts
            that the ceilings were computed from.
    """

    c: float = 4.0
    p: float = 0.1
    initial: str | float = "zero"
    bonus: str | float = "phi-max"
    clip: str = "potential"
    cap_at_initial: bool = False
    rate_offset: float | None = None
    time_limit: str = "bootstrap"
    shaped: bool = True
    model_based: bool = False
    prune: bool = False
    use_log_masses: bool = False

    def __post_init__(self) -> None:
        for name in ("c", "p", "initial", "bonus", "rate_offset"):
            value: Any = getattr(self, name)
            words = name in ("initial", "bonus") and isinstance(value, str)
            if type(value) is not bool and isinstance(value, numbers.Real):
                object.__setattr__(self, name, float(value))
            elif not words and not (name == "rate_offset" and value is None):
                raise ArgumentError(f"{name} is {value!r}; it must be a number.")
        for name, value, known in (
            ("initial", self.initial, INITIALS),
            ("bonus", self.bonus, BONUS_SCALES),
            ("clip", self.clip, CLIPS),
            ("time_limit", self.time_limit, TIME_LIMITS),
        ):
            number = name in ("initial", "bonus") and isinstance(value, float) and math.isfinite(value)
            if value not in known and not number:
                more = ", or a number" if name in ("initial", "bonus") else ""
                raise ArgumentError(f"{name} is {value!r}; use {' or '.join(map(repr, known))}{more}.")
        if not (0 <= self.c < math.inf and 0 < self.p < 1):
            raise ArgumentError(f"c is {self.c} and p is {self.p}; c must be 0 or more, and p between 0 and 1.")
        if isinstance(self.bonus, float) and self.bonus < 0:
            raise ArgumentError(f"bonus is {self.bonus}; it must be 0 or more.")
        if self.rate_offset is not None and not 0 <= self.rate_offset < math.inf:
            raise ArgumentError(f"rate_offset is {self.rate_offset}; it must be 0 or more.")
        if self.model_based and self.shaped:
            raise ArgumentError("A model-based rule plans with the reward as it is: pass shaped=False.")
        if self.use_log_masses and not self.model_based:
            raise ArgumentError("Only a model-based rule can plan with what the logs prove: pass model_based=True.")


MODEL_BONUS, CAUSAL_BONUS = 0.1, 0.15
"""The bonuses of the model-based presets, chosen on the same seeds and logs as that of the tight one: the first by its
regret, the second as the smallest whose recommended policy is optimal in 95% of the states of every grid world."""

TIGHT_BONUS, TIGHT_RATE_OFFSET = 0.05, 10.0
"""The bonus B / sqrt(t) and the memory of the tight preset, one for all worlds: chosen on tuning seeds and logs that no
report uses, by the geometric mean over the grid worlds of its regret as a share of the printed method's."""

PRESETS = MappingProxyType(
    {
        "q-ucb": Rule(initial="horizon", bonus="horizon", clip="horizon", shaped=False),
        "q-ucb-shaping": Rule(),
        "ucbvi": Rule(
            initial="ceilings", bonus=MODEL_BONUS, clip="potential", shaped=False, model_based=True, prune=True
        ),
        "ucbvi-causal": Rule(
            initial="ceilings",
            bonus=CAUSAL_BONUS,
            clip="potential",
            shaped=False,
            model_based=True,
            prune=True,
            use_log_masses=True,
        ),
        "q-ucb-shaping-tight": Rule(
            initial="ceilings", bonus=TIGHT_BONUS, clip="zero", cap_at_initial=True, rate_offset=TIGHT_RATE_OFFSET
        ),
    }
)


class Constants(NamedTuple):
    """What the kernels know of a rule; arrays have a leading axis of 1 without step index, of H with it.

    Attributes:
        discount: the factor on future reward.
        potential: float64 [steps + 1, states], the last row 0 with step index, else the same as the first; 0 where an
            episode has ended, and everywhere if the reward is not shaped.
        initial: float64 [steps, states, actions].
        clip: float64 [steps, states].
        bonus: B of b_t = B / sqrt(t).
        rate_offset: the k of the learning rate (k + 1) / (k + t).
        cap_at_initial: see `Rule`.
    """

    discount: float
    potential: FloatArray
    initial: FloatArray
    clip: FloatArray
    bonus: float
    rate_offset: float
    cap_at_initial: bool


@dataclass(frozen=True, eq=False)
class Setting:
    """A rule made ready for a problem.

    Attributes:
        horizon: H.
        constants: for the kernels.
        initial_values: float64 [steps + 1, states].
        bootstrap: see `Rule.time_limit`.
        step_indexed: one table per step.
        model_based: see `Rule`.
    """

    horizon: int
    constants: Constants
    initial_values: FloatArray
    bootstrap: bool
    step_indexed: bool
    model_based: bool


def resolve(learner: str | Rule, **changes: Any) -> Rule:
    """Return a rule by name, or as given, with some constants changed."""
    if isinstance(learner, str):
        if learner not in PRESETS:
            raise ArgumentError(f"There is no learner {learner!r}. Learners are {', '.join(PRESETS)}.")
        learner = PRESETS[learner]
    if unknown := set(changes) - {field.name for field in fields(Rule)}:
        raise ArgumentError(
            f"A rule has no {', '.join(sorted(unknown))}. It has {', '.join(f.name for f in fields(Rule))}."
        )
    return replace(learner, **changes) if changes else learner


def prepare(
    rule: Rule,
    space: Space,
    terminal: BoolArray,
    horizon: int,
    steps: int,
    potential: Potential | Ceilings | None = None,
    floors: Floors | None = None,
    step_indexed: bool = False,
) -> Setting:
    """Return a setting: a rule with its numbers for states, actions and a budget.

    Args:
        rule: the constants.
        space: the states and actions, in the order that tables shall have.
        terminal: bool [states].
        horizon: H.
        steps: the budget T.
        potential: what shapes the reward, or ceilings, which also give tables per action; None for 0.
        floors: for `bonus="span"`.
        step_indexed: one table per step.
    """
    ceilings = potential if isinstance(potential, Ceilings) else None
    if ceilings is not None and not ceilings.stationary and ceilings.horizon != horizon:
        raise ArgumentError(f"The ceilings are of {ceilings.horizon} steps, but episodes last {horizon}.")
    if not isinstance(potential, (Ceilings, Potential, type(None))):
        raise ArgumentError(f"{potential!r} is no potential. Use Potential(values, space), or ceilings.")
    if not isinstance(floors, (Floors, type(None))):
        raise ArgumentError("floors must come from value_floors.")
    phi = potential.potential(step_indexed=step_indexed) if isinstance(potential, Ceilings) else potential
    layers, states, actions = horizon if step_indexed else 1, len(space.states), len(space.actions)
    table = np.zeros((layers + 1, states))
    if phi is not None:
        if phi.step_indexed and not step_indexed:
            raise ArgumentError("The potential has steps and the learner has not: use potential(step_indexed=False).")
        if phi.horizon is not None and phi.horizon != horizon:
            raise ArgumentError(f"The potential has {phi.horizon} steps, but episodes last {horizon}.")
        places = phi.locate(space)
        unknown = (places == UNSEEN) & ~terminal
        if phi.space.columns != space.columns or unknown[~terminal].all():
            raise ArgumentError(f"The potential is of other states: it has {phi.space!r}, the learner {space!r}.")
        if unknown.any():
            warnings.warn(
                f"The potential does not know {unknown.sum()} states, {space.states[int(np.argmax(unknown))]} among "
                "them; they count as unseen.",
                ShapingWarning,
                stacklevel=3,
            )
        table[:] = phi.at(places[None, :], np.arange(layers + 1)[:, None]) if phi.step_indexed else phi.at(places)
        if step_indexed:
            table[-1] = 0.0
        table[:, terminal] = 0.0
    discount = 1.0 if phi is None else phi.discount
    shaping = table if rule.shaped else np.zeros_like(table)
    initial = _initial(rule, table, ceilings, space, horizon, layers, actions)
    initial[:, terminal] = 0.0
    if rule.prune and ceilings is not None and floors is not None:
        initial = np.where(_pruned(ceilings, floors, space, step_indexed), -np.inf, initial)
    first = np.concatenate([initial.max(axis=-1), np.zeros((1, states))])
    if not step_indexed:
        first[-1] = first[0]
    clip = {
        "horizon": np.full((layers, states), float(horizon)),
        "potential": table[:layers],
        "zero": np.zeros((layers, states)),
        "none": np.full((layers, states), np.inf),
    }[rule.clip]
    iota = math.log(max(int((~terminal).sum()) * actions * steps / rule.p, 1.0))
    scale = rule.bonus if isinstance(rule.bonus, (int, float)) else _scale(rule.bonus, table, ceilings, floors, horizon)
    bonus = float(scale) if isinstance(rule.bonus, (int, float)) else rule.c * scale * math.sqrt(horizon * iota)
    constants = Constants(
        discount=discount,
        potential=shaping,
        initial=initial,
        clip=np.ascontiguousarray(clip),
        bonus=bonus,
        rate_offset=float(horizon if rule.rate_offset is None else rule.rate_offset),
        cap_at_initial=rule.cap_at_initial,
    )
    return Setting(horizon, constants, first, rule.time_limit == "bootstrap", step_indexed, rule.model_based)


def _pruned(ceilings: Ceilings, floors: Floors, space: Space, step_indexed: bool) -> BoolArray:
    """Return which actions are provably suboptimal: bool [steps, states, actions], one step without step index."""
    if step_indexed == ceilings.stationary:
        raise ArgumentError(
            "A table without steps is pruned by ceilings and floors without a time limit (stationary=True), a table "
            "with steps by those of the horizon."
        )
    states, actions = ceilings.space.positions(space)
    mask = provably_suboptimal(ceilings, floors).reshape(-1, *ceilings.q_values.shape[-2:])
    return np.asarray(mask[:, states][:, :, actions])


def _initial(
    rule: Rule, table: FloatArray, ceilings: Ceilings | None, space: Space, horizon: int, layers: int, actions: int
) -> FloatArray:
    shape = (layers, table.shape[1], actions)
    if rule.initial == "horizon":
        return np.full(shape, float(horizon))
    if rule.initial == "zero":
        return np.zeros(shape)
    if rule.initial == "potential":
        return np.repeat((np.zeros_like(table) if rule.shaped else table)[:layers, :, None], actions, axis=2)
    if rule.initial != "ceilings":
        return np.full(shape, float(rule.initial))
    if ceilings is None:
        raise ArgumentError(
            "This learner starts from ceilings per action: pass the ceilings. Without any, or with a potential alone, "
            "say where to start: initial='zero' where nothing is worth more than 0, or initial='potential'."
        )
    q_values = ceilings.q_values[None] if ceilings.stationary else ceilings.q_values[:layers]
    states, names = ceilings.space.positions(space)
    moved = q_values[:, states][:, :, names]
    if np.isnan(moved).any():
        raise ArgumentError("The ceilings skip actions (method='paper'); use method='joint' for a table per action.")
    return np.broadcast_to(moved - (table[:layers, :, None] if rule.shaped else 0.0), shape).copy()


def _scale(
    name: str | float, table: FloatArray, ceilings: Ceilings | None, floors: Floors | None, horizon: int
) -> float:
    if name == "horizon":
        return float(horizon)
    if name == "phi-max":
        return float(max(table.max(), 0.0))  # as printed; a terminal state counts 0
    if ceilings is None or floors is None:
        raise ArgumentError("bonus='span' needs the ceilings and floors= of the optimal value.")
    # After the end, and after the last step, the value is 0.
    return float(max(ceilings.values.max(), 0.0) - min(floors.values.min(), 0.0))


@njit(nogil=True)
def update(learned, layer, below, s, x, reward, after, going_on, constants):  # type: ignore[no-untyped-def]
    """Learn from one step.

    `layer` is the table of the step and `below` that of the next one; both 0 without step index. `going_on` says
    whether anything follows s': not after the end, and not at a time limit that counts as one.
    """
    q_values, values, visits = learned
    discount, potential, initial, clip, bonus, rate_offset, cap_at_initial = constants
    visits[layer, s, x] += 1
    t = visits[layer, s, x]
    alpha = (rate_offset + 1.0) / (rate_offset + t)
    shaped = reward - potential[layer, s]
    following = 0.0
    if going_on:
        shaped += discount * potential[below, after]
        following = discount * values[below, after]
    new = (1.0 - alpha) * q_values[layer, s, x] + alpha * (shaped + following + bonus / math.sqrt(t))
    if cap_at_initial:
        new = min(new, initial[layer, s, x])
    q_values[layer, s, x] = new
    values[layer, s] = min(clip[layer, s], q_values[layer, s].max())


@njit(nogil=True)
def greedy(q_values, visits, least_tried):  # type: ignore[no-untyped-def]
    """Return the best action: among equals the one that was tried least, or else the lowest number."""
    best = 0
    for x in range(1, len(q_values)):
        if q_values[x] > q_values[best] or (least_tried and q_values[x] == q_values[best] and visits[x] < visits[best]):
            best = x
    return best


@njit(nogil=True)
def record(counted, visits, layer, s, x, reward, after):  # type: ignore[no-untyped-def]
    """Count a step for a model-based rule; `after` is the number of states if it ended. False if there is no room."""
    paid, successors, times = counted
    visits[layer, s, x] += 1
    paid[layer, s, x] += reward
    for i in range(successors.shape[-1]):
        if successors[layer, s, x, i] == after or times[layer, s, x, i] == 0:
            successors[layer, s, x, i] = after
            times[layer, s, x, i] += 1
            return True
    return False


@njit(nogil=True)
def plan(learned, counted, proven, terminal, step_indexed, constants, recommending):  # type: ignore[no-untyped-def]
    """Plan optimistically with what was counted: backwards over the steps, or sweeps that start from the last plan.

    `values` ends with a column for the end, which stays 0. `proven` is what logs prove of one step. `recommending` asks
    for what to do when all is learned: an action that was never tried does not count where another one was.
    """
    q_values, values, visits = learned
    paid, successors, times = counted
    discount, _, initial, clip, bonus, _, _ = constants
    known, begin, end, masses, unrestricted, reward_max = proven
    rewards, _, _, action, first, _, after, reward, lower, _, deficit, total = masses
    layers, states, actions = q_values.shape
    for _sweep in range(1 if step_indexed else PLANNING_SWEEPS):
        change = 0.0
        for layer in range(layers - 1, -1, -1):
            below = layer + 1 if step_indexed else 0
            here, following = q_values[layer], discount * values[below]
            most = np.inf  # what an action can be worth of which the logs show nothing
            if known:
                highest = 0.0
                for s in range(states):
                    if not terminal[s]:
                        highest = max(highest, values[below, s])
                most = reward_max + discount * highest
            for s in range(states):
                if terminal[s]:
                    continue
                for x in range(actions):
                    here[s, x] = most
                if known:
                    seen = backup_state(
                        s, begin[s], end[s], action, first, after, reward, lower, deficit, rewards, following, here
                    )
                    w = most if unrestricted[s] else seen
                    for k in range(begin[s], end[s]):
                        here[s, action[k]] = add_free_mass(here[s, action[k]], total[k], w)
                tried = recommending and visits[layer, s].max() > 0
                for x in range(actions):
                    n = visits[layer, s, x]
                    if tried and n == 0:
                        here[s, x] = -np.inf
                        continue
                    here[s, x] = min(here[s, x], initial[layer, s, x])
                    if n > 0:
                        earned = 0.0
                        for i in range(successors.shape[-1]):
                            if times[layer, s, x, i] == 0:
                                break
                            earned += times[layer, s, x, i] * values[below, successors[layer, s, x, i]]
                        mean = (paid[layer, s, x] + discount * earned) / n
                        here[s, x] = min(here[s, x], mean + bonus / math.sqrt(n))
                new = min(clip[layer, s], here[s].max())
                change = max(change, abs(new - values[layer, s]))
                values[layer, s] = new
                if not step_indexed:
                    following[s] = discount * new
        if change < (RECOMMENDING_TOLERANCE if recommending else PLANNING_TOLERANCE):
            break
