"""What the study runs: worlds, coin rules, methods, seeds and budgets, as data.

- `METHODS`: the methods of the paper's table, added ones, and the ablation.
- `PRINTED`: the optimal ratios that the paper prints.
- `Plan`: a selection of all that, with its budgets; `Plan.jobs` are the units of work.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from causal_shaping import __version__
from causal_shaping._checks import MOST_SEEDS, check_choice, check_integer
from causal_shaping.data.arrays import checksum_of
from causal_shaping.errors import ArgumentError, UnknownNameError
from causal_shaping.learners import PRESETS
from causal_shaping.learners.rules import POSTERIOR
from causal_shaping.worlds import World, list_worlds, load_world
from causal_shaping.worlds.world import COINS
from studies.paper.baselines.bcq import train_bcq

ROBOT = "walking-robot"
WORLDS = tuple(name for name in list_worlds() if name != ROBOT)
BUDGETS: Mapping[str, int] = {name: 100_000 if name == "windy-empty" else 20_000 for name in WORLDS}
"""Environment steps of a run, as the paper says; its released code counts the same numbers as episodes."""

LOG_STEPS = 100_000
SEEDS, FEWER_SEEDS = 20, 10
"""The number of seeds, from 0; BCQ, posterior sampling, which is slow, and the ablation, which is large, run only the
first ones."""

CONFIDENCE, RAREST = 0.95, 0.01
"""The settings of bounds with confidence; anything may follow where visits are too few to have shown such outcomes."""


QUICK_SEEDS, QUICK_DIVISOR, QUICK_BCQ_STEPS = 2, 10, 200
"""A quick run, to see that everything works: seeds, the divisor of budgets, and the training steps of BCQ."""

PAPER_BOUND = 0.0
"""The b behind the paper's results in the grid worlds. A coin pays more, so that the bound is not guaranteed."""

VALUE_MAX = 0.0
"""A known upper bound on values in the grid worlds over an infinite horizon; a zero potential assumes it implicitly."""

STUDY_VERSION = 4
"""To be increased when the same plan gives different results."""

RUN, POTENTIAL = "run", "potential"

BCQ_THRESHOLDS: Mapping[str, float] = {"bcq": 0.3, "bcq-tuned": 0.05, "bcq-strict": 0.5}
"""Thresholds of BCQ: the published one, the best on tuning logs, and the one that comes closest to the printed row."""


@dataclass(frozen=True)
class Method:
    """A method: a row of a table.

    Attributes:
        name: its name in files and in `--only`.
        title: its title in tables and figures.
        group: "paper" for methods of the paper's table, "added" for others, or "ablation".
        potential: what it learns from: the potential that shapes the reward, a name in `POTENTIALS`, or for the learner
            "posterior" a name in `BELIEFS`; None for neither.
        learner: the preset of its learner; None if it does not learn online, as BCQ alone.
        changes: changed constants of the learner's rule.
        worlds: the worlds in which it is run.
    """

    name: str
    title: str
    group: str
    potential: str | None
    learner: str | None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.potential is None or self.potential in (BELIEFS if self.learner == POSTERIOR else POTENTIALS)


POTENTIALS: Mapping[str, str] = {
    "zero": "zero",
    "paper": "the paper's bound, b = 0",
    "min": "behaviour values, min",
    "max": "behaviour values, max",
    "avg": "behaviour values, avg",
    **{name: f"BCQ's values, threshold {threshold:g}" for name, threshold in BCQ_THRESHOLDS.items()},
    "optimum": "V* itself (oracle)",
    "joint": "joint ceilings",
    "joint-any": "joint ceilings, any support",
    "joint-sure": f"joint ceilings, confidence {CONFIDENCE}",
    "joint-capped": "joint ceilings, values up to 0",
    "joint-trial": "joint ceilings with a randomised source",
    "guess": "best guess: the posterior mean of V*",
    "floor": "joint floors",
}
"""The potentials by name, and their titles."""

BELIEFS: Mapping[str, str] = {
    "posterior": "posterior of all sources",
    "posterior-confounded": "posterior without the source that does not look at the wind",
}
"""What the learner "posterior" starts from, by name."""

BLIND: Mapping[str, str] = {name: "safe" if name.startswith("lavacross-maze") else "random" for name in WORLDS}
"""The demonstrator of each world that chooses its actions without looking at the wind: its logs are unconfounded,
though nobody told so."""

SHOWN_BOUNDS = ("joint-any", "joint-sure", "joint-capped", "joint-trial", "floor")
"""Bounds that the report shows beside those that shape rewards."""

PLAIN = {"bonus": 0.0, "clip": "zero"}
"""The printed rule without the two parts that do harm; see `docs/differences.md`."""

PAPER_METHODS = (
    Method("no-shaping", "No shaping, Q-UCB", "paper", None, "q-ucb"),
    Method("causal-bound", "Shaping + causal bound", "paper", "paper", "q-ucb-shaping"),
    Method("min", "Shaping + min value", "paper", "min", "q-ucb-shaping"),
    Method("max", "Shaping + max value", "paper", "max", "q-ucb-shaping"),
    Method("avg", "Shaping + avg value", "paper", "avg", "q-ucb-shaping"),
    Method("bcq", "BCQ", "paper", "bcq", None),
    Method("shaping-bcq", "Shaping + BCQ", "paper", "bcq", "q-ucb-shaping"),
)
ADDED_METHODS = (
    Method("bcq-tuned", "BCQ, threshold 0.05", "added", "bcq-tuned", None),
    Method("shaping-bcq-tuned", "Shaping + BCQ, threshold 0.05", "added", "bcq-tuned", "q-ucb-shaping"),
    Method("bcq-strict", "BCQ, threshold 0.5", "added", "bcq-strict", None),
    Method("shaping-bcq-strict", "Shaping + BCQ, threshold 0.5", "added", "bcq-strict", "q-ucb-shaping"),
    Method("zero", "Zero potential", "added", "zero", "q-ucb-shaping"),
    Method("oracle", "V* (oracle), as printed", "added", "optimum", "q-ucb-shaping"),
    Method("oracle-clip-zero", "V* (oracle), clip at 0", "added", "optimum", "q-ucb-shaping", {"clip": "zero"}),
    Method("joint", "Joint ceilings, as printed", "added", "joint", "q-ucb-shaping"),
    Method("joint-plain", "Joint ceilings, no bonus, clip at 0", "added", "joint", "q-ucb-shaping", PLAIN),
    Method("guess", "Best guess, no bonus, no clip", "added", "guess", "q-ucb-shaping", {"bonus": 0.0, "clip": "none"}),
    Method("posterior-no-logs", "Posterior, no logs", "added", None, POSTERIOR),
    Method("posterior", "Posterior", "added", "posterior", POSTERIOR),
    Method("posterior-confounded", "Posterior, without the blind source", "added", "posterior-confounded", POSTERIOR),
)
FACTORS: Mapping[str, Sequence[Any]] = {
    "initial": ("horizon", "zero"),
    "bonus": ("horizon", "phi-max", 0.0),
    "clip": ("horizon", "potential", "zero"),
    "potential": ("zero", "paper", "joint"),
}
"""The ablation: all combinations of these levels, in a table without step index. The first levels together are Q-UCB;
the second levels with the paper's bound are the printed method."""


def ablation_name(initial: str, bonus: str | float, clip: str, potential: str) -> str:
    """Return the name of a combination of `FACTORS`."""
    return f"initial-{initial}-bonus-{bonus}-clip-{clip}-potential-{potential}"


def _ablation() -> Iterator[Method]:
    for initial, bonus, clip, potential in itertools.product(*FACTORS.values()):
        title = f"initial {initial}, bonus {bonus}, clip {clip}, potential {potential}"
        changes = {"initial": initial, "bonus": bonus, "clip": clip}
        name = ablation_name(initial, bonus, clip, potential)
        yield Method(name, title, "ablation", potential, "q-ucb-shaping", changes)


METHODS: Mapping[str, Method] = {method.name: method for method in (*PAPER_METHODS, *ADDED_METHODS, *_ablation())}
BASELINE = "zero"
"""The method without logs with which all others are compared."""

RECOMMENDED = "posterior"
"""The one configuration for all worlds."""

SHAPED = "joint-plain"
"""The one configuration that shapes rewards."""

PRINTED: Mapping[str, Mapping[str, float]] = {
    method: dict(zip(WORLDS, row, strict=False))
    for method, row in {
        "no-shaping": (0.00, 0.00, 0.00, 0.03),
        "causal-bound": (0.76, 0.70, 0.81, 0.90),
        "min": (0.72, 0.49, 0.30, 0.24),
        "max": (0.73, 0.52, 0.59, 0.33),
        "avg": (0.74, 0.50, 0.49, 0.24),
        "bcq": (0.79, 0.50, 0.67, 0.50),
        "shaping-bcq": (0.88, 0.31, 0.22, 0.03),
    }.items()
}
"""The paper's table of optimal ratios (argmax match), by method and world; it lacks the fifth world."""


@dataclass(frozen=True, order=True)
class Unit:
    """One unit of the results: a run of a method, or the facts of a potential.

    Attributes:
        world: the name of the world.
        coins: the coin rule.
        seed: the seed of logs and learner.
        kind: `RUN` or `POTENTIAL`.
        name: the name of the method or the potential.
    """

    world: str
    coins: str
    seed: int
    kind: str
    name: str

    @property
    def path(self) -> str:
        """The name of its part."""
        return f"{self.world}, {self.coins}, {self.seed}, {self.kind}, {self.name}"


@dataclass(frozen=True)
class Job:
    """Units that share logs; one worker runs them one after another."""

    world: str
    coins: str
    seed: int
    deep: bool
    units: tuple[Unit, ...]

    def __str__(self) -> str:
        return f"{self.world}, coins {self.coins}, seed {self.seed}{', BCQ' if self.deep else ''}"

    @property
    def cost(self) -> float:
        """Its approximate duration, in seconds on one core."""
        learners = [METHODS[unit.name].learner for unit in self.units if unit.kind == RUN]
        sampled = (3.0 if self.world == "windy-empty" else 1.5) * learners.count(POSTERIOR)
        return 1.0 + len(self.units) * 0.02 + 0.5 * learners.count(None) + sampled  # no learner: BCQ is trained


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        seeds: the number of seeds, from 0; each is that of the logs and of the learner. Some methods run fewer.
        quick: whether to use small budgets, to see that everything works.
        counted_in: the unit of budgets, "steps" or "episodes".
        deep: whether to run BCQ.
        only: what to run now: the selected values of "world", "method", "coins" and "seed"; everything if empty.
    """

    seeds: int = SEEDS
    quick: bool = False
    counted_in: str = "steps"
    deep: bool = True
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_integer("seeds", self.seeds, least=1, most=MOST_SEEDS)
        check_choice("counted_in", self.counted_in, ("steps", "episodes"))
        known: dict[str, Sequence[str]] = {
            "world": WORLDS,
            "method": tuple(METHODS),
            "coins": COINS,
            "seed": [str(seed) for seed in range(self.seeds)],
        }
        for key, values in self.only.items():
            if key not in known:
                raise UnknownNameError(f"--only knows {', '.join(known)}, not {key!r}. Write --only world=NAME.")
            for value in values:
                if value not in known[key]:
                    raise UnknownNameError(f"There is no {key} {value!r}. There are {', '.join(known[key])}.")

    @property
    def bcq_steps(self) -> int | None:
        """The number of training steps of BCQ; None for its own default."""
        return QUICK_BCQ_STEPS if self.quick else None

    def budget(self, world: str) -> int:
        """Return the budget of a world, in steps or in episodes."""
        return BUDGETS[world] // (QUICK_DIVISOR if self.quick else 1)

    def log_steps(self) -> int:
        """Return the number of logged steps of each demonstrator."""
        return LOG_STEPS // (QUICK_DIVISOR if self.quick else 1)

    def settings(self) -> dict[str, Any]:
        """Return everything but the seed that results depend on, as plain values: a folder holds results of one."""
        return {
            "version": __version__,
            "quick": self.quick,
            "counted_in": self.counted_in,
            "study": STUDY_VERSION,
            "methods": checksum_of(repr(self._constants()), []),
        }

    def _constants(self) -> list[Any]:
        """Return every constant that results depend on; titles are left out."""
        methods = [(m.name, m.potential, m.learner, dict(m.changes)) for m in METHODS.values()]
        bounds = [PAPER_BOUND, VALUE_MAX, CONFIDENCE, RAREST, BCQ_THRESHOLDS]
        training = [(p.name, p.default) for p in signature(train_bcq).parameters.values()]
        return [methods, dict(PRESETS), BUDGETS, LOG_STEPS, QUICK_DIVISOR, QUICK_BCQ_STEPS, bounds, training]

    def jobs(self) -> list[Job]:
        """Return the jobs, longest first; units that share logs are together, those with BCQ in jobs of their own."""
        chosen = [method for method in METHODS.values() if self._selected("method", method.name)]
        result = []
        for name, coins in itertools.product(WORLDS, COINS):
            if not (self._selected("world", name) and self._selected("coins", coins)):
                continue
            world = load_world(name, coins=coins)
            if coins == "once" and not (world.grid and world.grid.coins):
                continue  # the same world under both rules
            for seed, deep in itertools.product(range(self.seeds), (True, False)):
                if not self._selected("seed", str(seed)):
                    continue
                methods = [method for method in chosen if is_deep(method) == deep and seed < _seeds_of(method)]
                units = tuple(self._units(world, seed, methods))
                if units:
                    result.append(Job(name, coins, seed, deep, units))
        return sorted(result, key=lambda job: -job.cost)

    def _selected(self, key: str, value: str) -> bool:
        return value in self.only.get(key, [value])

    def _units(self, world: World, seed: int, methods: Sequence[Method]) -> Iterator[Unit]:
        fitting = [method for method in methods if self._fits(method, world)]
        needed = {method.potential for method in fitting if method.potential is not None} - set(BELIEFS)
        if fitting and "method" not in self.only and not any(map(is_deep, fitting)):
            needed |= {*SHOWN_BOUNDS}
        for name in sorted(needed):
            yield Unit(world.name, world.coins, seed, POTENTIAL, name)
        for method in fitting:
            yield Unit(world.name, world.coins, seed, RUN, method.name)

    def _fits(self, method: Method, world: World) -> bool:
        if is_deep(method) and not self.deep:
            return False
        return world.coins == "standing" or not (is_deep(method) or method.group == "ablation")


def is_deep(method: Method) -> bool:
    """Return whether a method needs BCQ."""
    return method.potential in BCQ_THRESHOLDS


def _seeds_of(method: Method) -> int | float:
    """Return the largest number of seeds that a method runs."""
    few = is_deep(method) or method.learner == POSTERIOR or method.group == "ablation"
    return FEWER_SEEDS if few else math.inf


def parse_only(parts: Sequence[str]) -> dict[str, list[str]]:
    """Parse the values of `--only`, such as world=A method=B,C, into lists by key."""
    result: dict[str, list[str]] = {}
    for part in parts:
        key, equals, values = part.partition("=")
        if not equals:
            how = "'world=NAME', 'method=NAME', 'coins=RULE' or 'seed=NUMBER'"
            raise ArgumentError(f"--only has {part!r}; write it as {how}.")
        result.setdefault(key, []).extend(values.split(","))
    return result
