"""What is too long for the test suite: checks that run in parts, resume where they stopped, and keep their figures.

    make calibrate                       # all of it: some hours
    make calibrate ARGS='confidence'     # one check
    make calibrate ARGS='--list'         # the checks, and how far each is
    make calibrate ARGS='--quick sources'    # the last part of a check, printed and not kept

A check is a list of parts and a function that returns the figures of one. The figures of all are written to
`figures/CHECK.json` beside this file; a part that is there is not run again, unless --again says so or the check's
version has changed. To add a check, write those two and put it into `CHECKS`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies import ROOT, parts

HERE = Path(__file__).parent
FIGURES = HERE / "figures"
WORK = HERE / "work"
Figures = dict[str, Any]


@dataclass(frozen=True)
class Check:
    """A check that takes long.

    Attributes:
        text: what it shows, in a sentence.
        version: raised when its figures are no longer comparable with earlier ones.
        parts: the names of its parts.
        run: returns the figures of a part.
        passes: whether the figures of all parts are as promised.
    """

    text: str
    version: int
    parts: Callable[[], Sequence[str]]
    run: Callable[[str], Figures]
    passes: Callable[[Mapping[str, Figures]], bool]


# Properties ------------------------------------------------------------------------------------------------------


def property_files() -> list[str]:
    """Return the test files that hold properties."""
    tests = ROOT / "tests"
    return [
        path.relative_to(tests).as_posix() for path in sorted(tests.rglob("test_*.py")) if "@given" in path.read_text()
    ]


def run_properties(part: str) -> Figures:
    """Run the tests of a file with many examples, other ones each time."""
    command = [sys.executable, "-m", "pytest", f"tests/{part}", "-n", "auto"]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "long"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return {"passed": ran.returncode == 0, "end": ran.stdout[-2_000:] if ran.returncode else ""}


# Persistence -----------------------------------------------------------------------------------------------------

LEVEL, REPETITIONS, PERMUTATIONS = 0.05, 1_000, 99
NOTHING_LASTS = ("deterministic", "blind", "confounded", "time-varying")


def run_persistence(kind: str) -> Figures:
    """Return how often the test rejects where nothing lasts."""
    import numpy as np

    from studies.calibration.persistence_worlds import p_value, random_world

    worlds = (random_world(np.random.default_rng(seed), kind) for seed in range(REPETITIONS))
    found = [p_value(world, PERMUTATIONS, seed) for seed, world in enumerate(worlds)]
    return {"repetitions": REPETITIONS, "rejected": sum(p <= LEVEL for p in found)}


def level_holds(parts: Mapping[str, Figures]) -> bool:
    """Whether the test rejects at most as often as its level says, within two standard errors."""
    most = REPETITIONS * LEVEL + 2 * (REPETITIONS * LEVEL * (1 - LEVEL)) ** 0.5
    return all(figures["rejected"] <= most for figures in parts.values())


# Validity --------------------------------------------------------------------------------------------------------

CONFIDENCE, PART = 0.95, 500


def validity_parts() -> list[str]:
    """Return the seeds of 10,000 random worlds, in parts."""
    return [f"{first}-{first + PART - 1}" for first in range(0, 10_000, PART)]


def run_validity(part: str) -> Figures:
    """Return how often bounds or masks of random worlds were wrong, where their assumptions were true."""
    from studies.calibration.validity import tallied

    first, last = map(int, part.split("-"))
    return dict(tallied(range(first, last + 1)))


def small_worlds() -> list[str]:
    """Return the small worlds with rare outcomes."""
    from studies.worlds.small import WORLDS

    return list(WORLDS)


def run_coverage(world: str) -> Figures:
    """Return how often all limits held at once in 400 samples of a small world, and how far they were."""
    from studies.calibration.validity import covered

    return dict(covered(world, samples=400))


def covers(figures: Figures) -> bool:
    """Whether limits whose assumptions were true held in 95% of the samples; the default of `rarest` is no promise."""
    return all(
        min(found["ceilings"], found["floors"], found["masks"]) >= CONFIDENCE
        for name, found in figures["settings"].items()
        if "plug-in" not in name and "default" not in name
    )


# Sources ---------------------------------------------------------------------------------------------------------

SOURCE_REPETITIONS = 2000


def _counts_of(n: Any) -> Any:
    """Return counts of numbers by source, state, action and outcome."""
    import numpy as np

    import causal_shaping as cs

    sources, states, actions, outcomes = n.shape
    source, state, action, after = np.nonzero(n)
    columns = {"source": source, "step": None, "state": state, "action": action, "next_state": after}
    columns |= {"terminated": after < 0, "n": n[n > 0]}
    columns |= dict.fromkeys(("reward_sum", "reward_min", "reward_max"), np.zeros(len(after)))
    space = cs.Space(range(max(states, outcomes)), range(actions))
    return cs.Counts.combined(space, [f"s{i}" for i in range(sources)], columns)


def _false_contradiction(rng: Any) -> bool:
    """Whether three sources that are blind to the noise are accused: rare outcomes, uneven policies, few visits."""
    import numpy as np

    import causal_shaping as cs

    laws = rng.dirichlet(np.full(6, 0.3), (10, 3))
    taken = rng.multinomial(rng.poisson(40, (3, 10)), rng.dirichlet(np.full(3, 0.5), (3, 10)))
    return bool(cs.contradictions(_counts_of(rng.multinomial(taken, laws))))


def _false_excess(rng: Any) -> bool:
    """Whether masses that add up to exactly 1 are called too many: two sources, each sees x lead to one outcome."""
    import numpy as np

    from causal_shaping.bounds.agreement import excess_masses

    share = rng.uniform(0.2, 0.8, 5)
    n = np.zeros((2, 5, 2, 2), dtype=int)
    for i, (visits, p) in enumerate(((40, share), (400, 1 - share))):
        n[i, :, 0, i] = rng.binomial(visits, p)
        n[i, :, 1, 0] = visits - n[i, :, 0, i]
    return bool((excess_masses(_counts_of(n)).p_value <= LEVEL).any())


def _false_limit(rng: Any) -> bool:
    """Whether more was never seen than the limit allows."""
    import numpy as np

    import causal_shaping as cs

    law = rng.dirichlet(np.full(30, 0.2))
    n = rng.multinomial(rng.integers(10, 500), law)
    return bool(law[n == 0].sum() > cs.unseen_limit(_counts_of(n[None, None, None]))[0])


SOURCES = {
    "contradictions of blind sources": _false_contradiction,
    "masses that add up to 1": _false_excess,
    "limits of unseen mass": _false_limit,
}


def run_sources(part: str) -> Figures:
    """Return how often something false is said of sources of one world."""
    import numpy as np

    rng = np.random.default_rng(0)
    return {"repetitions": SOURCE_REPETITIONS, "false": sum(SOURCES[part](rng) for _ in range(SOURCE_REPETITIONS))}


# Checks with a module of their own -------------------------------------------------------------------------------


@dataclass(frozen=True)
class late:
    """A function of a module in this folder that is imported once it is called; it can be sent to other processes."""

    module: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        """Import and call it."""
        return getattr(importlib.import_module(f"studies.calibration.{self.module}"), self.name)(*arguments)


CHECKS = {
    "properties": Check(
        "The suite's properties hold with 50 times as many examples, other ones each time; slow ones with fewer.",
        1,
        property_files,
        run_properties,
        lambda parts: all(part["passed"] for part in parts.values()),
    ),
    "persistence": Check(
        f"The persistence test rejects in at most {LEVEL:.0%} of the logs in which nothing lasts.",
        1,
        lambda: NOTHING_LASTS,
        run_persistence,
        level_holds,
    ),
    "validity": Check(
        "Bounds and masks of 10,000 random worlds, at population level, hold wherever their assumptions are true.",
        1,
        validity_parts,
        run_validity,
        lambda parts: not any(part["worlds with a failure"] for part in parts.values()),
    ),
    "coverage": Check(
        f"Limits at {CONFIDENCE:g} hold at once in that share of 400 samples of small worlds with rare outcomes.",
        1,
        small_worlds,
        run_coverage,
        lambda parts: all(map(covers, parts.values())),
    ),
    "sources": Check(
        f"What is said of sources that watch one world is false with a probability of at most {LEVEL:g}.",
        1,
        lambda: list(SOURCES),
        run_sources,
        lambda parts: all(part["false"] <= LEVEL * part["repetitions"] for part in parts.values()),
    ),
    "verdict": Check(
        "The verdict calls no more than 4% of the ceilings in 400 random worlds the opposite of what they are.",
        2,
        lambda: [f"seed {seed}" for seed in range(4)],
        late("verdict", "run_verdict"),
        lambda parts: (
            sum(
                part["true / said"]["help / no help"] + part["true / said"]["no help / help"] for part in parts.values()
            )
            <= 0.04 * sum(part["worlds"] for part in parts.values())
        ),
    ),
    "hard-worlds": Check(
        "Confounded logs save regret in random worlds and cost little in hostile ones.",
        1,
        late("hard", "hard_parts"),
        late("hard", "run_hard"),
        late("hard", "holds"),
    ),
    "bandits": Check(
        "None of 1,000 runs with one step, at three scales of rewards, keeps to a worse action.",
        1,
        late("hard", "bandit_parts"),
        late("hard", "run_bandits"),
        lambda parts: not any(sum(part["locked in"].values()) for part in parts.values()),
    ),
    "posterior": Check(
        "In the paper's worlds the learner posterior has a small share of the regret of a zero potential.",
        1,
        late("paper_worlds", "paper_parts"),
        late("paper_worlds", "run_paper_world"),
        late("paper_worlds", "paper_holds"),
    ),
    "calibration": Check(
        "Posterior intervals of V* hold as often as they say in 200 worlds drawn from the prior, with confounded logs.",
        1,
        late("calibration", "calibration_parts"),
        late("calibration", "run_calibration"),
        late("calibration", "holds"),
    ),
    "worth": Check(
        "What logs are predicted to save goes together with what they save, in worlds of all kinds.",
        1,
        late("worth", "worth_parts"),
        late("worth", "run_worth"),
        late("worth", "holds"),
    ),
    "continuous-persistence": Check(
        "Where states cannot be listed, the persistence test alarms in at most about 5% of small clean logs.",
        2,
        late("continuous_tests", "persistence_parts"),
        late("continuous_tests", "run_persistence"),
        late("continuous_tests", "holds"),
    ),
    "continuous-sources": Check(
        "Where states cannot be listed, sources that see nothing hidden are accused in at most about 5% of small logs.",
        2,
        late("continuous_tests", "source_parts"),
        late("continuous_tests", "run_sources"),
        late("continuous_tests", "holds"),
    ),
    "fitted-tests": Check(
        "The two tests of a fit alarm in about 5% of fits as they are, and in most of those that are broken.",
        1,
        late("fitted_tests", "parts"),
        late("fitted_tests", "run_part"),
        late("fitted_tests", "holds"),
    ),
}


def run(name: str, again: bool = False, workers: int = 1) -> bool:
    """Run the parts of a check that are missing, keep their figures, and return whether all is as promised."""
    check, wanted = CHECKS[name], CHECKS[name].parts()
    found = parts.run_figures(FIGURES / f"{name}.json", check.version, wanted, check.run, workers=workers, again=again)
    passed = check.passes({part: found[part] for part in wanted})
    print(f"{name}: {'as promised' if passed else 'NOT AS PROMISED'}. {check.text}")
    return passed


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; return the exit code."""
    lines = "\n".join(f"  {name:12} {check.text}" for name, check in CHECKS.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\nThe checks:\n\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="which to run; all if left out")
    parser.add_argument("--list", action="store_true", help="list the checks and how far each is")
    parser.add_argument("--again", action="store_true", help="run also what is there already")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="run the last part of each, print it, keep nothing")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.checks if name not in CHECKS]
    if unknown:
        parser.error(f"there is no check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    chosen = given.checks or list(CHECKS)
    if given.list:
        for name in chosen:
            wanted, kept = CHECKS[name].parts(), parts.figures(FIGURES / f"{name}.json", CHECKS[name].version)
            print(f"{name:12} {sum(part in kept for part in wanted)} of {len(wanted)} parts. {CHECKS[name].text}")
        return 0
    if given.quick:
        for name in chosen:
            part = CHECKS[name].parts()[-1]
            print(f"{name}, {part}: {CHECKS[name].run(part)}")
        return 0
    passed = [run(name, given.again, given.workers) for name in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
