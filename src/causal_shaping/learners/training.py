"""Training a table: compiled over a world's own tables, or step by step in any discrete Gymnasium environment.

Randomness of a run is one stream: a uniform for the start state of each episode, then one per step for the hidden
noise. The compiled and the Gymnasium path draw alike, so that they learn the same table, bit for bit.

- `train`: one run.
- `Run`: what it learned and what that cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np

from causal_shaping._checks import check_integer
from causal_shaping._compile import njit
from causal_shaping.bounds.results import Ceilings, Floors
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, LongArray, frozen
from causal_shaping.data.counts import Counts
from causal_shaping.data.potential import UNSEEN, Potential
from causal_shaping.data.space import Space
from causal_shaping.errors import ArgumentError, ModelError, ShapingWarning
from causal_shaping.learners._kernels import greedy, plan, record, update
from causal_shaping.learners._log_masses import LogMasses, log_masses, no_log_masses
from causal_shaping.learners.rules import Rule, Setting, prepare, resolve
from causal_shaping.shaping._shaper import time_limit_of
from causal_shaping.shaping.wrappers import ShapeReward
from causal_shaping.worlds import World
from causal_shaping.worlds.simulate import cumulative, pick

MOST_SUCCESSORS = 64
"""The most different states that a model-based rule can count after one (s, x)."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One run of a learner.

    Attributes:
        name: the world's, or the environment's.
        rule: the learner's constants.
        seed: of the run.
        space: the states and actions.
        horizon: steps after which an episode was cut.
        discount: the factor on future reward.
        step_regret: float64 [steps], the regret so far: the sum of V*(s) - Q*(s, x), stationary, or with step index of
            that step, all with the discount; NaN where there is no such optimum, or it is not known.
        episode_end: int64 [episodes], the steps taken when each episode ended; the last one may be cut by the budget.
        returns: float64 [episodes], unshaped and undiscounted.
        q_values: float64 [states, actions], or [steps, states, actions] with step index; under shaping of the shaped
            reward.
        values: float64 like `q_values` without actions.
        visits: int64 like `q_values`.
        checkpoints: int64 [checkpoints], steps after which the policy was kept.
        policies: int32 [checkpoints, states], or [checkpoints, steps, states]: the best actions then.
        recommended: int32 [states] or [steps, states], what to do once learning is over: for a model-based rule the
            plan without bonus, in which an action that was never tried does not count where another one was; else the
            same as `policy`.
    """

    name: str
    rule: Rule
    seed: int
    space: Space
    horizon: int
    discount: float
    step_regret: FloatArray
    episode_end: LongArray
    returns: FloatArray
    q_values: FloatArray
    values: FloatArray
    visits: LongArray
    checkpoints: LongArray
    policies: IntArray
    recommended: IntArray

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.step_regret)

    @property
    def regret(self) -> FloatArray:
        """The regret at the end of each episode: float64 [episodes], cumulative."""
        return np.asarray(self.step_regret[self.episode_end - 1])

    @property
    def policy(self) -> IntArray:
        """The best actions at the end, the lowest number among equals: int32 [states] or [steps, states]."""
        return np.asarray(np.argmax(self.q_values, axis=-1), dtype=np.int32)

    def __repr__(self) -> str:
        last = "" if np.isnan(self.step_regret[-1]) else f", regret {self.step_regret[-1]:.4g}"
        return f"Run({self.name}, seed {self.seed}: {self.steps:,} steps in {len(self.returns):,} episodes{last})"


def train(
    world: World | gym.Env[Any, Any],
    potential: Potential | Ceilings | None = None,
    learner: str | Rule = "q-ucb-shaping",
    steps: int = 20_000,
    seed: int = 0,
    step_indexed: bool = False,
    *,
    floors: Floors | None = None,
    counts: Counts | None = None,
    checkpoints: Iterable[int] = (),
    episodes: int | None = None,
    horizon: int | None = None,
    compiled: bool = True,
    **changes: Any,
) -> Run:
    """Train a learner online and return what it learned and what it cost.

    Args:
        world: a world, learned in compiled code, or a Gymnasium environment with discrete actions, whose states are its
            own numbers or observations that the potential knows.
        potential: what shapes the reward; ceilings also give tables per action. None shapes with 0.
        learner: "q-ucb" (Jin et al. 2018, the paper's algorithm 3), "q-ucb-shaping" (the paper's algorithm 1, as
            printed), "q-ucb-shaping-tight", "ucbvi" (model-based, Azar et al. 2017), "ucbvi-causal" (the same, which
            plans also with what the logs prove of a step), or a `Rule` of your own.
        steps: the budget of environment steps.
        seed: equal seeds give equal runs.
        step_indexed: one table per step of the episode.
        floors: for `bonus="span"`, and to prune what is provably suboptimal.
        counts: for a rule that plans with what they prove of one step, those that the ceilings were computed from.
        checkpoints: numbers of steps after which to keep the policy; those that are not reached are left out.
        episodes: stop after so many episodes, if that comes before the steps are used up.
        horizon: how many steps an episode has; by default the world's.
        compiled: learn a world in compiled code; False steps through its environment, with equal results.
        changes: constants of the rule to change, such as c=2.0; see `Rule`.

    Examples:
        >>> import causal_shaping as cs
        >>> world = cs.load_world("lavacross-easy")
        >>> cs.train(world, steps=2_000, seed=1)
        Run(lavacross-easy, seed 1: 2,000 steps in ... episodes, regret ...)
    """
    rule = resolve(learner, **changes)
    steps, seed = check_integer("steps", steps, least=1), check_integer("seed", seed)
    kept = np.unique(np.array([check_integer("checkpoints", at, least=1) for at in checkpoints], dtype=np.int64))
    kept = kept[kept <= steps]
    most_episodes = steps if episodes is None else check_integer("episodes", episodes, least=1)
    problem = _Problem(world, potential, horizon)
    setting = prepare(rule, problem.space, problem.terminal, problem.horizon, steps, potential, floors, step_indexed)
    constants = setting.constants
    gaps = problem.gaps(step_indexed, constants.discount)
    layers, states, actions = constants.initial.shape
    visits = np.zeros((layers, states, actions), dtype=np.int64)
    # A last column for the end, which is worth 0: a model-based rule counts it among the states.
    values = np.append(setting.initial_values, np.zeros((layers + 1, 1)), axis=1)
    # Each noise leads to one state.
    most = MOST_SUCCESSORS if problem.world is None else problem.world.model.noise.shape[-1]
    room = min(states + 1, most) if setting.model_based else 0
    successors = np.zeros((layers, states, actions, room), dtype=np.int32)
    counted = (np.zeros((layers, states, actions)), successors, np.zeros(successors.shape, dtype=np.int64))
    learned = (constants.initial.copy(), values, visits)
    policies = np.zeros((len(kept), layers, states), dtype=np.int32)
    proven = no_log_masses()
    if rule.use_log_masses and counts is not None and isinstance(potential, Ceilings):
        proven = log_masses(counts, potential, problem.space)
    elif rule.use_log_masses or counts is not None:
        raise ArgumentError(
            "This learner plans with what the logs prove: pass their ceilings, and counts=, from which they were "
            "computed."
            if rule.use_log_masses
            else "counts are for a learner that plans with what the logs prove, such as 'ucbvi-causal'."
        )
    if isinstance(world, World) and compiled:
        model = world.model
        if model.steps is not None:
            raise ArgumentError("Learners need a world whose tables are the same at each step.")
        found = _run(
            np.random.default_rng(seed),
            *(steps, most_episodes, step_indexed, setting.bootstrap, gaps, kept),
            *(model.next_state, model.reward, cumulative(model.noise), model.terminal, cumulative(model.start)),
            *(learned, counted, proven, policies, setting.model_based, setting.horizon, constants),
        )
    else:
        found = _play(problem, setting, steps, most_episodes, seed, gaps, kept, learned, counted, proven, policies)
    regret, ends, returns = found
    kept = kept[kept <= len(regret)]
    _warn_of_clip(setting, float(returns[-max(1, len(returns) // 10) :].mean()))
    first: Any = slice(None) if step_indexed else 0
    recommended = learned[0].copy()
    if setting.model_based:
        unbiased = constants._replace(bonus=0.0)
        plan((recommended, values.copy(), visits), counted, proven, problem.terminal, step_indexed, unbiased, True)
    return Run(
        name=problem.name,
        rule=rule,
        seed=seed,
        space=problem.space,
        horizon=problem.horizon,
        discount=constants.discount,
        step_regret=frozen(np.cumsum(regret), np.float64),
        episode_end=frozen(ends, np.int64),
        returns=frozen(returns, np.float64),
        q_values=frozen(learned[0][first], np.float64),
        values=frozen(learned[1][:layers, :states][first], np.float64),
        visits=frozen(learned[2][first], np.int64),
        checkpoints=frozen(kept, np.int64),
        policies=frozen(policies[: len(kept), first], np.int32),
        recommended=frozen(recommended.argmax(axis=-1)[first], np.int32),
    )


def _warn_of_clip(setting: Setting, earned: float) -> None:
    """Warn if episodes earn more on average than values can be: then what is paid cannot be learned."""
    clip = setting.constants.clip
    if setting.constants.discount == 1 and not setting.model_based:
        highest = float((setting.constants.potential[: len(clip)] + clip).max())
        if earned > highest + 1e-9:
            warnings.warn(
                f"Episodes earn {earned:.4g}, but values are clipped at {highest:.4g}: what is paid beyond that is "
                "not learned. Pass a potential that bounds the value from above, or clip='none'.",
                ShapingWarning,
                stacklevel=3,
            )


class _Problem:
    """What a learner needs to know of a world or an environment."""

    def __init__(self, world: World | gym.Env[Any, Any], potential: Any, horizon: int | None) -> None:
        if not isinstance(world, (World, gym.Env)):
            raise ArgumentError(
                f"{world!r} is neither a world nor an environment. Use load_world(...) or gymnasium.make."
            )
        self.env: gym.Env[Any, Any] | None = None if isinstance(world, World) else world
        inside = world if isinstance(world, World) else getattr(world.unwrapped, "world", None)
        self.world: World | None = inside if isinstance(inside, World) else None
        self.name = world.name if isinstance(world, World) else _name(world)
        own = self.world.space if self.world is not None else None
        if self.env is not None:
            _refuse_actions(self.env.action_space)
            _refuse_shaped(self.env)
            held = getattr(self.env.unwrapped, "space", None)
            own = held if isinstance(held, Space) else None
        # An environment that has a space shows the numbers of its states; any other shows labels.
        self.numbered = own is not None
        self.space: Space = own if own is not None else self._labelled(potential)
        self.terminal: BoolArray = self.space.is_terminal
        self.actions = range(len(self.space.actions)) if self.env is None else self._actions(self.env.action_space)
        limit = self._limit() if horizon is None else horizon
        if limit is None:
            raise ArgumentError(f"{self.name} has no time limit: pass horizon=, the steps of an episode.")
        self.horizon = check_integer("horizon", limit, least=1)
        if self.numbered and self.env is not None and not isinstance(self.env.observation_space, gym.spaces.Discrete):
            raise ArgumentError(
                f"The observations of {self.name} are not its states. Make it with observation='state'."
            )
        self.first = 0 if self.env is None else int(getattr(self.env.observation_space, "start", 0))

    def _labelled(self, potential: Any) -> Space:
        assert self.env is not None
        if potential is not None:
            return potential.space  # type: ignore[no-any-return]
        if isinstance(self.env.observation_space, gym.spaces.Discrete):
            return Space(_numbers(self.env.observation_space), _numbers(self.env.action_space))
        raise ArgumentError(
            f"The observations of {self.name} are not numbers of states: pass ceilings, or a potential whose space "
            "knows them, such as Potential.zero(counts) to learn without."
        )

    def _actions(self, actions: Any) -> Sequence[int]:
        """Return the environment's number of each action of the space: by label if that is a number, else in order."""
        labels, known = self.space.actions, _numbers(actions)
        by_label = not self.numbered and all(isinstance(label, int) for label in labels)
        if len(labels) != len(known) or (by_label and set(labels) != set(known)):
            raise ArgumentError(
                f"The actions are {', '.join(map(str, labels))}, but {self.name} takes {known.start} to "
                f"{known.stop - 1}. Declare all of them, also those that no log holds: count(..., actions=[...])."
            )
        return [int(label) for label in labels] if by_label else list(known)  # type: ignore[arg-type]

    def _limit(self) -> int | None:
        return time_limit_of(self.env) if self.env is not None else self.world.horizon  # type: ignore[union-attr]

    def gaps(self, step_indexed: bool, discount: float) -> FloatArray:
        """Return V* - Q* [steps, states, actions], one step without step index; NaN if there is no such optimum."""
        unknown = np.full((1, len(self.space.states), len(self.space.actions)), np.nan)
        if self.world is None:
            return unknown
        try:
            found = self.world.model.gaps(self.horizon if step_indexed else None, discount)
        except ModelError:
            return unknown if not step_indexed else np.repeat(unknown, self.horizon, axis=0)
        return found if step_indexed else found[None]

    def position(self, observation: Any) -> int:
        """Return the number of a state that was met."""
        if self.numbered:
            return int(observation) - self.first
        place = self._places.get(self.space.label(observation), UNSEEN)
        if place == UNSEEN:
            raise ArgumentError(f"{self.name} shows {observation!r}, which is not one of the learner's states.")
        return place

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(self.space.states)}


def _name(env: gym.Env[Any, Any]) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def _numbers(space: Any) -> range:
    return range(int(space.start), int(space.start + space.n))


def _refuse_shaped(env: Any) -> None:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, ShapeReward):
            raise ArgumentError("The learner shapes the reward itself: pass the environment without ShapeReward.")
        env = env.env


def _refuse_actions(actions: gym.Space[Any]) -> None:
    if not isinstance(actions, gym.spaces.Discrete):
        raise ArgumentError(f"The actions are {actions}, but a table needs discrete ones.")


def _play(
    problem: _Problem,
    setting: Setting,
    steps: int,
    most_episodes: int,
    seed: int,
    gaps: FloatArray,
    kept: LongArray,
    learned: Any,
    counted: Any,
    proven: LogMasses,
    policies: IntArray,
) -> tuple[FloatArray, LongArray, FloatArray]:
    """Learn step by step in an environment, by the same rule."""
    from causal_shaping.worlds.environments import environment_of  # imports MiniGrid

    env: Any = problem.env
    if env is None:
        assert problem.world is not None
        env = environment_of(replace(problem.world, horizon=problem.horizon))
    q_values, _, visits = learned
    constants, end = setting.constants, len(problem.terminal)
    regret, ends, returns = np.empty(steps), [], []
    observation, _ = env.reset(seed=seed)
    s, h, earned, saved = problem.position(observation), 0, 0.0, 0
    for step in range(steps):
        layer, below = (h, h + 1) if setting.step_indexed else (0, 0)
        x = int(greedy(q_values[layer, s], visits[layer, s], constants.cap_at_initial))
        regret[step] = gaps[min(h, len(gaps) - 1), s, x]
        observation, reward, terminated, truncated, _ = env.step(problem.actions[x])
        after = s if terminated else problem.position(observation)
        h += 1
        cut = bool(truncated) or h == setting.horizon
        going_on = not terminated and (setting.bootstrap or not cut)
        if not setting.model_based:
            update(learned, layer, below, s, x, float(reward), after, going_on, constants)
        elif not record(counted, visits, layer, s, x, float(reward), after if going_on else end):
            raise ArgumentError(f"More than {MOST_SUCCESSORS} states follow one state; take a learner without a model.")
        earned += float(reward)
        over = terminated or cut or step + 1 == steps
        if over and setting.model_based:
            plan(learned, counted, proven, problem.terminal, setting.step_indexed, constants, False)
        while saved < len(kept) and kept[saved] == step + 1:
            policies[saved] = q_values.argmax(axis=-1)
            saved += 1
        if over:
            ends.append(step + 1)
            returns.append(earned)
            if len(ends) == most_episodes:
                break
            if step + 1 < steps:
                observation, _ = env.reset()
                s = problem.position(observation)
            h, earned = 0, 0.0
        else:
            s = after
    return regret[: ends[-1]], np.array(ends, dtype=np.int64), np.array(returns)


@njit(nogil=True)
def _run(  # type: ignore[no-untyped-def]
    rng,
    steps,
    most_episodes,
    step_indexed,
    bootstrap,
    gaps,
    kept,
    next_state,
    reward,
    noise,
    terminal,
    start,
    learned,
    counted,
    proven,
    policies,
    model_based,
    horizon,
    constants,
):
    """Learn in a world's tables; `noise` and `start` are running sums. s, x, u: state, action, hidden noise."""
    q_values, _, visits = learned
    regret, ends, returns = np.empty(steps), np.empty(steps, dtype=np.int64), np.empty(steps)
    episodes, saved, h, earned = 0, 0, 0, 0.0
    s = pick(start, rng.random())
    for step in range(steps):
        layer, below = (h, h + 1) if step_indexed else (0, 0)
        x = greedy(q_values[layer, s], visits[layer, s], constants.cap_at_initial)
        regret[step] = gaps[layer, s, x]
        u = pick(noise[s], rng.random())
        after = next_state[s, x, u]
        ended = terminal[after]
        h += 1
        cut = h == horizon
        going_on = not ended and (bootstrap or not cut)
        if model_based:
            record(counted, visits, layer, s, x, reward[s, x, u], after if going_on else len(terminal))
        else:
            update(learned, layer, below, s, x, reward[s, x, u], after, going_on, constants)
        earned += reward[s, x, u]
        over = ended or cut or step + 1 == steps
        if over and model_based:
            plan(learned, counted, proven, terminal, step_indexed, constants, False)
        while saved < len(kept) and kept[saved] == step + 1:
            for layer_ in range(q_values.shape[0]):
                for state in range(q_values.shape[1]):
                    policies[saved, layer_, state] = q_values[layer_, state].argmax()
            saved += 1
        if over:
            ends[episodes], returns[episodes] = step + 1, earned
            episodes, h, earned = episodes + 1, 0, 0.0
            if episodes == most_episodes:
                break
            if step + 1 < steps:
                s = pick(start, rng.random())
        else:
            s = after
    return regret[: ends[episodes - 1]].copy(), ends[:episodes].copy(), returns[:episodes].copy()
