"""What the field study runs: families of cases, their budgets and seeds, as data.

A *case* is a world with logs: who was watched, how confounded they are, and how many rows there are. Every case has one
set of logs, and several seeds of the learner.

- `FAMILIES`: the families by name.
- `Case`: a case; `Case.world()` makes its world.
- `Plan`: a selection with its budgets; `Plan.jobs` are the units of work.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from causal_shaping import __version__
from causal_shaping.data.arrays import checksum_of
from causal_shaping.errors import UnknownNameError
from causal_shaping.worlds import World
from studies.field.demonstrators import CONFOUNDING, SKILLS, demonstrators, trial
from studies.field.problems import PROBLEMS
from studies.field.random_worlds import SHAPES
from studies.field.rivals import SETTINGS
from studies.field.sepsis import HORIZON, PACKAGE as SEPSIS_PACKAGE, clinicians, sepsis

FIELD_VERSION = 2
"""To be increased when the same plan gives different results."""

FIRST_SEED = 2_000_000
"""The seeds of this study begin here: of worlds and demonstrators, of logs, of learners, of drawn worlds.

All other seeds of the repository are smaller, so that nothing was tuned on any of these."""

WORLD_SEED, LOG_SEED, LEARNER_SEED, DRAW_SEED = (FIRST_SEED + 100_000 * i for i in range(4))
TRIAL = "trial"

LONG = 20.0
"""Jobs of more seconds are started first, so that none is left alone at the end."""

RUN, CLAIM, WORTH = "run", "claim", "worth"
NO_LOGS = "no-logs"
"""The case of what needs no logs, once for each world."""


@dataclass(frozen=True)
class Method:
    """A method: a row of a table.

    Attributes:
        name: its name in files.
        title: its title in tables and figures.
        ours: whether it is ours, or a rival.
        uses_logs: whether it uses logs.
    """

    name: str
    title: str
    ours: bool = False
    uses_logs: bool = True


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("no-logs", "Posterior sampling, no logs", ours=True, uses_logs=False),
        Method("psrl", "PSRL, no logs", uses_logs=False),
        Method("ucbvi", "UCBVI, no logs", uses_logs=False),
        Method("zero", "Optimistic Q-learning, zero potential", uses_logs=False),
        Method("paper", "The paper's method"),
        Method("behaviour", "Behaviour values as potential"),
        Method("naive-model", "Logs believed: PSRL from their counts"),
        Method("naive-q", "Logs believed: fitted Q, then Q-learning"),
        Method("replay", "Logs believed: fitted Q, then replayed half and half"),
        Method("envelopes", "Value envelopes in UCBVI"),
        Method("ceilings", "Ceilings as potential", ours=True),
        Method("guess", "Best guess as potential", ours=True),
        Method("posterior", "Posterior sampling with logs", ours=True),
    )
}
"""The methods."""

BASELINE, RECOMMENDED = "no-logs", "posterior"
"""What all others are compared with: the same learner with logs and without."""


@dataclass(frozen=True)
class Case:
    """A world with logs.

    Attributes:
        family: the name of its family.
        kind: the kind of world: a name in `SHAPES` or `PROBLEMS`, "sepsis", or the data of a family of claims.
        number: which world of its kind.
        skill: who was watched, see `SKILLS`.
        confounding: see `CONFOUNDING`.
        rows: the rows of each source.
        gamma: the confounding that the learner is told of, for all sources but a trial; it is true.
        trial: the rows of a randomised source, which is declared as such.
    """

    family: str
    kind: str
    number: int = 0
    skill: str = ""
    confounding: str = ""
    rows: int = 0
    gamma: float = math.inf
    trial: int = 0

    @property
    def place(self) -> str:
        """The name of its world."""
        return f"{self.kind}-{self.number}"

    @property
    def name(self) -> str:
        """Its name, unique in its family."""
        parts = [self.place, self.skill, self.confounding, str(self.rows) if self.rows else ""]
        parts += [f"gamma{self.gamma:g}"] if math.isfinite(self.gamma) else []
        parts += [f"trial{self.trial}"] if self.trial else []
        return "-".join(part for part in parts if part)

    def world(self) -> World:
        """Return its world, with the demonstrators that were watched and, if there is one, the trial."""
        rng = np.random.default_rng([WORLD_SEED + self.number, sorted((*SHAPES, *PROBLEMS, "sepsis")).index(self.kind)])
        noises: tuple[str, ...] = ()
        if self.kind in SHAPES:
            model, horizon = SHAPES[self.kind](rng)
        elif self.kind in PROBLEMS:
            model, horizon, noises = PROBLEMS[self.kind]()
        else:
            model, horizon = sepsis(), HORIZON
        vars(model).setdefault("optimum", cache(model.optimum))  # all methods and seeds ask for it
        watched = {}
        if self.skill and self.kind != "sepsis":
            watched = demonstrators(model, self.skill, self.confounding, rng)
        elif self.skill:
            kinds = ("good", "bad") if self.skill == "mixed" else (self.skill,)
            kinds = ("hostile",) if self.confounding == "hostile" else kinds
            watched = {kind: clinicians(kind, self.gamma, rng) for kind in kinds}
        if self.trial:
            watched[TRIAL] = trial(model)
        noises = noises or tuple(f"u{u}" for u in range(model.noise.shape[-1]))
        return World(self.place, self.place, model, horizon, noises, watched)


@dataclass(frozen=True)
class Family:
    """A family of cases.

    Attributes:
        name: its name in files and in `--families`.
        title: what it is.
        cases: its cases.
        steps: the budget of a run, unless the kind of world has one of its own.
        steps_of: those.
        seeds: how many seeds a learner has in each case.
        draws: how many worlds are drawn to predict what the logs are worth.
        package: the package that holds its data.
    """

    name: str
    title: str
    cases: Sequence[Case]
    steps: int = 0
    steps_of: Mapping[str, int] = field(default_factory=dict)
    seeds: int = 0
    draws: int = 0
    package: str | None = None

    def budget(self, kind: str) -> int:
        """Return the steps of a run in a kind of world."""
        return self.steps_of.get(kind, self.steps)


def _random_cases(worlds: int) -> list[Case]:
    """Return so many worlds of each shape: every skill with every confounding and every length, as evenly as can be."""
    combined = list(itertools.product(CONFOUNDING, SKILLS, (500, 3_000, 20_000)))
    cases = []
    for offset, shape in enumerate(SHAPES):
        for number in range(worlds):
            confounding, skill, rows = combined[(7 * number + 5 * offset) % len(combined)]
            cases.append(Case("random", shape, number, skill, confounding, rows))
    return cases


def _problem_cases() -> list[Case]:
    """Return four cases of each problem, of every confounding, with mixed skills and lengths; two of the slow taxi."""
    cases = []
    for place, kind in enumerate(PROBLEMS):
        for number, confounding in enumerate(CONFOUNDING):
            if kind == "taxi" and confounding in ("none", "strong"):
                continue
            skill = tuple(SKILLS)[(number + place) % len(SKILLS)]
            rows = (2_000, 20_000)[(number + place) % 2]
            cases.append(Case("problems", kind, 0, skill, confounding, rows))
    return cases


def _sepsis_cases() -> list[Case]:
    """Return clinicians of several Gammas and skills, with trials of several sizes."""
    return [
        Case("sepsis", "sepsis", 0, skill, confounding, rows, gamma, rows_of_trial)
        for skill, confounding, rows, gamma, rows_of_trial in (
            ("good", "none", 20_000, 1.0, 0),
            ("good", "mild", 20_000, 2.0, 0),
            ("good", "mild", 100_000, 2.0, 0),
            ("good", "strong", 100_000, 5.0, 0),
            ("good", "strong", 100_000, 5.0, 2_000),
            ("good", "strong", 100_000, 5.0, 20_000),
            ("mixed", "mild", 50_000, 2.0, 0),
            ("bad", "strong", 100_000, 5.0, 0),
            ("bad", "hostile", 100_000, 5.0, 0),
            ("bad", "hostile", 100_000, 5.0, 20_000),
        )
    ]


FAMILIES: Mapping[str, Family] = {
    family.name: family
    for family in (
        Family(
            "random",
            "Random worlds of five shapes",
            _random_cases(40),
            steps=5_000,
            seeds=5,
            draws=32,
        ),
        Family(
            "problems",
            "Gymnasium's and other standard problems with a hidden gust or hint",
            _problem_cases(),
            steps=5_000,
            steps_of={"taxi": 6_000, "blackjack": 3_000},
            seeds=4,
            draws=12,
        ),
        Family(
            "sepsis",
            "ICU-Sepsis, with clinicians who see a hidden sign",
            _sepsis_cases(),
            steps=4_000,
            seeds=3,
            draws=2,
            package=SEPSIS_PACKAGE,
        ),
        Family(
            "lalonde", "LaLonde: a real trial and a real survey", [Case("lalonde", "lalonde")], package="causaldata"
        ),
        Family("clinic", "A clinic with a hidden cause that lasts", [Case("clinic", "clinic")]),
    )
}


@dataclass(frozen=True, order=True)
class Unit:
    """One unit of the results.

    Attributes:
        family: the name of its family.
        case: the name of its case; for what needs no logs, its world and `NO_LOGS`.
        kind: `RUN`, all seeds of a method; `CLAIM`, claims and whether they hold; `WORTH`, what is predicted.
        name: the name of the method or of the claims.
    """

    family: str
    case: str
    kind: str
    name: str

    @property
    def path(self) -> str:
        """The name of its part."""
        return f"{self.family}, {self.case}, {self.kind}, {self.name}"


@dataclass(frozen=True)
class Job:
    """Units that share logs; one worker runs them one after another."""

    case: Case
    units: tuple[Unit, ...]

    def __str__(self) -> str:
        return f"{self.case.family}, {self.case.name}"

    @property
    def cost(self) -> float:
        """Its approximate duration, in seconds on one core."""
        seconds = {"taxi": 25.0, "sepsis": 30.0, "blackjack": 4.0}.get(self.case.kind, 0.4)
        return seconds * len(self.units)


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        quick: whether to use small budgets and few cases, to see that everything works.
        families: the names of the families.
    """

    quick: bool = False
    families: tuple[str, ...] = tuple(FAMILIES)

    def __post_init__(self) -> None:
        for name in self.families:
            if name not in FAMILIES:
                raise UnknownNameError(f"There is no family {name!r}. There are {', '.join(FAMILIES)}.")

    def family(self, name: str) -> Family:
        """Return a family as this plan runs it."""
        family = FAMILIES[name]
        if not self.quick:
            return family
        every = {"random": 10, "problems": 3, "sepsis": 4}.get(name, 1)
        cases = [case for case in family.cases[::every] if case.kind != "taxi"]
        fewer: Any = {"steps": family.steps // 4, "seeds": min(family.seeds, 3), "draws": min(family.draws, 4)}
        return replace(family, cases=cases, steps_of={}, **fewer)

    def settings(self) -> dict[str, Any]:
        """Return everything that results depend on, as plain values: a folder holds results of one."""
        constants = [
            [asdict(self.family(name)) | {"title": ""} for name in FAMILIES],
            dict(SKILLS),
            dict(CONFOUNDING),
            {name: dict(setting) for name, setting in SETTINGS.items()},
            FIRST_SEED,
        ]
        return {
            "version": __version__,
            "quick": self.quick,
            "field": FIELD_VERSION,
            "plan": checksum_of(repr(constants), []),
        }

    def jobs(self) -> list[Job]:
        """Return the jobs: long ones first, then world after world of all kinds; units that share logs are together."""
        result = []
        for name in self.families:
            family, places = self.family(name), set()
            for case in family.cases:
                units = [Unit(name, case.name, CLAIM, "all")]
                if family.steps:
                    units += [Unit(name, case.name, RUN, method) for method, one in METHODS.items() if one.uses_logs]
                    units.append(Unit(name, case.name, WORTH, "posterior"))
                    if case.place not in places:
                        places.add(case.place)
                        free = replace(case, skill="", confounding="", rows=0, gamma=math.inf, trial=0)
                        own = [
                            Unit(name, f"{case.place}-{NO_LOGS}", RUN, method)
                            for method, one in METHODS.items()
                            if not one.uses_logs
                        ]
                        result.append(Job(free, tuple(own)))
                result.append(Job(case, tuple(units)))
        return sorted(result, key=lambda job: (-job.cost if job.cost > LONG else 0.0, job.case.number))
