"""What the study runs: worlds, coin rules, methods, seeds and budgets, as data.

- `METHODS`: the rows of the paper's table, those that are missing there, and the ablation.
- `PRINTED`: the optimal ratios that the paper prints.
- `Plan`: a choice of all that, with its budgets; `Plan.jobs` are the pieces of work.
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple

from causal_shaping import __version__
from causal_shaping._checks import check_integer
from causal_shaping.data.arrays import checksum_of
from causal_shaping.errors import ArgumentError, UnknownNameError
from causal_shaping.learners import PRESETS
from causal_shaping.paper.baselines.bcq import train_bcq
from causal_shaping.worlds import World, list_worlds, load_world
from causal_shaping.worlds.world import COINS

ROBOT = "walking-robot"
WORLDS = tuple(name for name in list_worlds() if name != ROBOT)
BUDGETS: Mapping[str, int] = {name: 100_000 if name == "windy-empty" else 20_000 for name in WORLDS}
"""Environment steps of a run, as the paper says; its released code counts the same numbers in episodes."""

LOG_STEPS = 100_000
SEEDS, FEWER_SEEDS = 20, 10
"""Seeds from 0; BCQ, which takes long, and the ablation, which is large, run the first ones only."""
CONFIDENCE, MIN_VISITS = 0.95, 100
"""Of ceilings with confidence; states with fewer visits are not trusted to have shown all that can follow them."""
COUNTED_IN = ("steps", "episodes")


class Quick(NamedTuple):
    """A quick run: seeds, by how much budgets are divided, and training steps of BCQ. It shows that all works."""

    seeds: int = 2
    divisor: int = 10
    bcq_steps: int = 200


QUICK = Quick()
CHECKPOINTS = 50
"""How often a run's policy is looked at."""

PAPER_BOUND = 0.0
"""The b behind the paper's results in the grid worlds. It is below what a coin pays: the bound is not guaranteed."""

VALUE_MAX = 0.0
"""What no state of the grid worlds is worth more than, without time limit: the optimism of a zero potential, said."""

STUDY_VERSION = 1
"""To be raised when the same plan gives other results."""

RUN, POTENTIAL = "run", "potential"

BCQ_THRESHOLDS: Mapping[str, float] = {"bcq": 0.3, "bcq-tuned": 0.05, "bcq-strict": 0.5}
"""BCQ's threshold: the published one, the best on tuning logs, and the one that comes nearest to the printed row."""

BCQ_LIFTED, LIFTED_TO = "bcq-lifted", 0.2
"""BCQ's values moved up until the largest is this: an experiment on what the printed row of shaping with BCQ may be."""


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes:
        name: for files and `--only`.
        title: for people.
        group: "paper" for rows of the paper's table, "added" for those that it lacks, "ablation".
        potential: what shapes the reward, a name of `POTENTIALS`; None for none.
        learner: a preset; None if nothing is learned online, as with BCQ alone. One that plans with what the logs prove
            gets their counts.
        changes: constants of its rule that are changed.
        worlds: where it is run.
    """

    name: str
    title: str
    group: str
    potential: str | None
    learner: str | None
    changes: Mapping[str, Any] = field(default_factory=dict)
    worlds: Sequence[str] = WORLDS

    def __post_init__(self) -> None:
        assert self.potential is None or self.potential in POTENTIALS


POTENTIALS: Mapping[str, str] = {
    "zero": "zero",
    "paper": "the paper's bound, b = 0",
    "min": "behaviour values, min",
    "max": "behaviour values, max",
    "avg": "behaviour values, avg",
    "max-without-better": "behaviour values, max without the better demonstrator",
    **{name: f"BCQ's values, threshold {threshold:g}" for name, threshold in BCQ_THRESHOLDS.items()},
    BCQ_LIFTED: f"BCQ's values, moved up to {LIFTED_TO:g}",
    "optimum": "V* itself (oracle)",
    "joint": "joint ceilings",
    "joint-any": "joint ceilings, any support",
    "joint-sure": f"joint ceilings, confidence {CONFIDENCE}",
    "joint-capped": "joint ceilings, no state worth more than 0",
    "joint-trial": "joint ceilings with a randomised source",
    "joint-capped-trial": "the same, no state worth more than 0",
}
"""What shapes rewards, by name. Beside these, `alone-NAME` are joint ceilings of the source NAME alone, and `floor` is
the joint floor; both are for the report, not for shaping."""

NO_INFORMATION = {"initial": "zero", "clip": "zero"}
"""What a learner knows without logs where every step costs or a coin was not yet found: values are 0 at most."""

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
    Method(
        "max-without-better",
        "Shaping + max value, without `better`",
        "added",
        "max-without-better",
        "q-ucb-shaping",
        worlds=("lavacross-maze",),
    ),
    Method("bcq-tuned", "BCQ, threshold 0.05", "added", "bcq-tuned", None),
    Method("shaping-bcq-tuned", "Shaping + BCQ, threshold 0.05", "added", "bcq-tuned", "q-ucb-shaping"),
    Method("bcq-strict", "BCQ, threshold 0.5", "added", "bcq-strict", None),
    Method("shaping-bcq-strict", "Shaping + BCQ, threshold 0.5", "added", "bcq-strict", "q-ucb-shaping"),
    Method("shaping-bcq-lifted", "Shaping + BCQ, moved up to 0.2", "added", BCQ_LIFTED, "q-ucb-shaping"),
    Method("zero", "Zero potential", "added", "zero", "q-ucb-shaping"),
    Method("oracle", "V* (oracle), as printed", "added", "optimum", "q-ucb-shaping"),
    Method("oracle-clip-zero", "V* (oracle), clip at 0", "added", "optimum", "q-ucb-shaping", {"clip": "zero"}),
    Method("joint", "Joint ceilings, as printed", "added", "joint", "q-ucb-shaping"),
    Method("tight-zero", "Zero potential, tight", "added", "zero", "q-ucb-shaping-tight", NO_INFORMATION),
    Method("tight", "Joint ceilings, tight", "added", "joint", "q-ucb-shaping-tight"),
    Method("tight-sure", f"Joint, confidence {CONFIDENCE}, tight", "added", "joint-sure", "q-ucb-shaping-tight"),
    Method("tight-capped", "Joint, values up to 0, tight", "added", "joint-capped", "q-ucb-shaping-tight"),
    Method("tight-trial", "Joint, a randomised source, tight", "added", "joint-trial", "q-ucb-shaping-tight"),
    Method("ucbvi-zero", "Zero potential, model-based", "added", "zero", "ucbvi", NO_INFORMATION),
    Method("ucbvi", "Joint ceilings, model-based", "added", "joint", "ucbvi"),
    Method("ucbvi-trial", "Joint, a randomised source, model-based", "added", "joint-trial", "ucbvi"),
    Method("causal", "Joint ceilings, causal model", "added", "joint", "ucbvi-causal"),
    Method("causal-capped", "Joint, values up to 0, causal model", "added", "joint-capped", "ucbvi-causal"),
    Method(
        "causal-capped-trial",
        "Joint, values up to 0, a randomised source, causal model",
        "added",
        "joint-capped-trial",
        "ucbvi-causal",
    ),
)
FACTORS: Mapping[str, Sequence[Any]] = {
    "initial": ("horizon", "zero"),
    "bonus": ("horizon", "phi-max", 0.0),
    "clip": ("horizon", "potential", "zero"),
    "potential": ("zero", "paper", "joint"),
}
"""The ablation: every combination, in a table without step index. The first levels together are Q-UCB; the second
levels with the paper's bound are the printed method."""


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
"""What needs no logs at all: every other method is compared with it."""

RECOMMENDED = "causal"
"""The one configuration for all worlds, its constants frozen on tuning seeds."""

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
"""The paper's table of optimal ratios (argmax match), by method and world; the fifth world has none."""


@dataclass(frozen=True, order=True)
class Unit:
    """One piece of the results: a run of a method, or the facts of a potential.

    Attributes:
        world: its name.
        coins: the coin rule.
        seed: of logs and learner.
        kind: `RUN` or `POTENTIAL`.
        name: of the method or the potential.
    """

    world: str
    coins: str
    seed: int
    kind: str
    name: str

    @property
    def path(self) -> str:
        """Where it is kept, from the folder of the parts."""
        return f"{self.world}-{self.coins}/seed-{self.seed}/{self.kind}-{self.name}.json"


@dataclass(frozen=True)
class Job:
    """Units that share logs, and are run one after the other by one worker."""

    world: str
    coins: str
    seed: int
    deep: bool
    units: tuple[Unit, ...]

    def __str__(self) -> str:
        return f"{self.world}, coins {self.coins}, seed {self.seed}{', BCQ' if self.deep else ''}"

    @property
    def cost(self) -> float:
        """About how long it takes, in seconds of a usual core."""
        learners = [METHODS[unit.name].learner for unit in self.units if unit.kind == RUN]
        return 1.0 + len(self.units) * 0.02 + 6.0 * learners.count(None)  # without a learner, BCQ trains


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        seeds: how many, from 0; seed k makes logs k and drives learner k. Some methods run the first ones only.
        quick: small budgets, to see that all works.
        counted_in: whether budgets are "steps" or "episodes".
        deep: with BCQ, which needs torch.
        only: what to run now: the allowed values of "world", "method", "coins" and "seed"; everything if empty.
    """

    seeds: int = SEEDS
    quick: bool = False
    counted_in: str = "steps"
    deep: bool = True
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_integer("seeds", self.seeds, least=1)
        if self.counted_in not in COUNTED_IN:
            raise ArgumentError(f"Budgets are counted in {' or '.join(COUNTED_IN)}, not in {self.counted_in!r}.")
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
                    near = difflib.get_close_matches(value, known[key], n=3)
                    hint = f" Did you mean {' or '.join(near)}?" if near else ""
                    named = [name for name in known[key] if key != "method" or METHODS[name].group != "ablation"]
                    raise UnknownNameError(f"There is no {key} {value!r}.{hint} There are {', '.join(named)}.")

    @cached_property
    def bcq_steps(self) -> int | None:
        """Training steps of BCQ, None for its own default."""
        return QUICK.bcq_steps if self.quick else None

    def budget(self, world: str) -> int:
        """Return the budget of a world, in what it is counted in."""
        return BUDGETS[world] // (QUICK.divisor if self.quick else 1)

    def log_steps(self) -> int:
        """Return how many steps of each demonstrator are logged."""
        return LOG_STEPS // (QUICK.divisor if self.quick else 1)

    def settings(self) -> dict[str, Any]:
        """Return all that results depend on besides the seed, as plain values: parts of other settings never mix."""
        return {
            "version": __version__,
            "quick": self.quick,
            "counted_in": self.counted_in,
            "study": STUDY_VERSION,
            "methods": checksum_of(repr(self._constants()), []),
        }

    def _constants(self) -> list[Any]:
        """Return every number that results depend on; titles do not matter."""
        methods = [(m.name, m.potential, m.learner, dict(m.changes), m.worlds) for m in METHODS.values()]
        bounds = [PAPER_BOUND, VALUE_MAX, CONFIDENCE, MIN_VISITS, BCQ_THRESHOLDS, LIFTED_TO]
        training = [(p.name, p.default) for p in signature(train_bcq).parameters.values() if p.name != "progress"]
        return [methods, dict(PRESETS), BUDGETS, LOG_STEPS, QUICK, CHECKPOINTS, bounds, training]

    def jobs(self) -> list[Job]:
        """Return the work, longest first; units that share logs together, BCQ apart."""
        chosen = [method for method in METHODS.values() if self._wanted("method", method.name)]
        result = []
        for name, coins in itertools.product(WORLDS, COINS):
            if not (self._wanted("world", name) and self._wanted("coins", coins)):
                continue
            world = load_world(name, coins=coins)
            if coins == "once" and not has_coins(world):
                continue  # the same world under both rules
            for seed, deep in itertools.product(range(self.seeds), (True, False)):
                if not self._wanted("seed", str(seed)):
                    continue
                alike = [method for method in chosen if is_deep(method) == deep and seed < seeds_of(method)]
                units = tuple(self._units(world, seed, alike))
                if units:
                    result.append(Job(name, coins, seed, deep, units))
        return sorted(result, key=lambda job: -job.cost)

    def _wanted(self, key: str, value: str) -> bool:
        return value in self.only.get(key, [value])

    def _units(self, world: World, seed: int, methods: Sequence[Method]) -> Iterator[Unit]:
        fitting = [method for method in methods if self._fits(method, world)]
        needed = {method.potential for method in fitting if method.potential is not None}
        if fitting and "method" not in self.only and not any(map(is_deep, fitting)):
            needed |= {"joint-any", "floor", *(f"alone-{name}" for name in world.demonstrators)}
        for name in sorted(needed):
            yield Unit(world.name, world.coins, seed, POTENTIAL, name)
        for method in fitting:
            yield Unit(world.name, world.coins, seed, RUN, method.name)

    def _fits(self, method: Method, world: World) -> bool:
        if world.name not in method.worlds:
            return False
        if is_deep(method):
            return self.deep and world.coins == "standing"
        return method.group != "ablation" or world.coins == "standing"


def is_deep(method: Method) -> bool:
    """Return whether a method needs BCQ."""
    return method.potential in (*BCQ_THRESHOLDS, BCQ_LIFTED)


def seeds_of(method: Method) -> int | float:
    """Return how many seeds a method runs at most."""
    return FEWER_SEEDS if is_deep(method) or method.group == "ablation" else math.inf


def has_coins(world: World) -> bool:
    """Return whether the coin rule matters in a world."""
    return world.grid is not None and bool(world.grid.coins)


def read_only(parts: Sequence[str]) -> dict[str, list[str]]:
    """Read world=A method=B,C as what is allowed of each."""
    result: dict[str, list[str]] = {}
    for part in parts:
        key, equals, values = part.partition("=")
        if not equals:
            raise ArgumentError(f"--only has {part!r}; write it as world=NAME, method=NAME, coins=RULE or seed=NUMBER.")
        result.setdefault(key, []).extend(values.split(","))
    return result
