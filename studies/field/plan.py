"""What the field study runs: families of cases, their budgets and seeds, as data.

A *case* is a world with logs: who was watched, how confounded they are, and how many rows there are. Every case has one
set of logs, and several seeds of the learner.

- `FAMILIES`: the families by name.
- `Case`: a case; `Case.world()` makes its world.
- `Plan`: a selection with its budgets; `Plan.jobs` are the cases that it runs.
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
from studies.field.sepsis import HORIZON, clinicians, sepsis

FIELD_VERSION = 3
"""To be increased when the same plan gives different results."""

FIRST_SEED = 2_000_000
"""The seeds of this study begin here: of worlds and demonstrators, of logs, of learners, of drawn worlds.

All other seeds of the repository are smaller, so that nothing was tuned on any of these."""

WORLD_SEED, LOG_SEED, LEARNER_SEED, DRAW_SEED = (FIRST_SEED + 100_000 * i for i in range(4))
CONFIDENCE = 0.95
"""Of all claims."""

TRIAL = "trial"

NO_LOGS = "no-logs"
"""The skill of a case of what needs no logs, which runs once for each world."""

SLOW = ("sepsis", "taxi", "blackjack")
"""Worlds in which a run takes seconds: they are started first, so that none is left alone at the end."""


@dataclass(frozen=True)
class Case:
    """A world with logs.

    Attributes:
        family: the name of its family.
        kind: the kind of world: a name in `SHAPES` or `PROBLEMS`, "sepsis", or the data of a family of claims.
        number: which world of its kind.
        skill: who was watched, see `SKILLS`; `NO_LOGS` for nobody.
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
        if self.skill != NO_LOGS and self.kind != "sepsis":
            watched = demonstrators(model, self.skill, self.confounding, rng)
        elif self.skill != NO_LOGS:
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
        title: what it is.
        cases: its cases.
        steps: the budget of a run, unless the kind of world has one of its own.
        steps_of: those.
        seeds: how many seeds a learner has in each case.
        draws: how many worlds are drawn to predict what the logs are worth.
    """

    title: str
    cases: Sequence[Case]
    steps: int = 0
    steps_of: Mapping[str, int] = field(default_factory=dict)
    seeds: int = 0
    draws: int = 0

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
    return [
        Case("problems", kind, 0, tuple(SKILLS)[at % len(SKILLS)], confounding, (2_000, 20_000)[at % 2])
        for place, kind in enumerate(PROBLEMS)
        for at, confounding in enumerate(CONFOUNDING, place)
        if kind != "taxi" or confounding in ("mild", "hostile")
    ]


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


PROBLEMS_TITLE = "Gymnasium's and other standard problems with a hidden gust or hint"
SEPSIS_TITLE = "ICU-Sepsis, with clinicians who see a hidden sign"
OWN_STEPS = {"taxi": 6_000, "blackjack": 3_000}
FAMILIES: Mapping[str, Family] = {
    "random": Family("Random worlds of five shapes", _random_cases(40), 5_000, seeds=5, draws=32),
    "problems": Family(PROBLEMS_TITLE, _problem_cases(), 5_000, OWN_STEPS, seeds=4, draws=12),
    "sepsis": Family(SEPSIS_TITLE, _sepsis_cases(), 4_000, seeds=3, draws=2),
    "clinic": Family("A clinic with a hidden cause that lasts", [Case("clinic", "clinic")]),
}
"""The families, by their names in files and in `--families`."""


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
        families = [asdict(self.family(name)) | {"title": ""} for name in FAMILIES]
        plan = checksum_of(repr([families, dict(SKILLS), dict(CONFOUNDING), SETTINGS, FIRST_SEED]), [])
        return {"version": __version__, "quick": self.quick, "field": FIELD_VERSION, "plan": plan}

    def jobs(self) -> dict[str, Case]:
        """Return the cases by the names of their parts, and, once for each world, that of what needs no logs."""
        cases = [case for name in self.families for case in self.family(name).cases]
        worlds = {(case.family, case.place): case for case in cases if case.rows}
        free = [Case(one.family, one.kind, one.number, NO_LOGS) for one in worlds.values()]
        # Slow ones first, then world after world of all kinds.
        every = sorted([*free, *cases], key=lambda case: (case.kind not in SLOW, case.number))
        return {f"{case.family}, {case.name}": case for case in every}
