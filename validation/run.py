"""What is too long for the test suite: checks that run in parts, resume where they stopped, and keep their figures.

    make validate                       # all of it: some hours
    make validate ARGS='confidence'     # one check
    make validate ARGS='--list'         # the checks, and how far each is

A check is a list of parts and a function that returns the figures of one. The figures of a part are written to
`validation/figures/CHECK.json` as soon as they are there; a part that is there is not run again, unless --again says
so or the check's version has changed. To add a check, write those two and put it into `CHECKS`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    tests = HERE.parent / "tests"
    return [
        path.relative_to(tests).as_posix() for path in sorted(tests.rglob("test_*.py")) if "@given" in path.read_text()
    ]


def run_properties(part: str) -> Figures:
    """Run the tests of a file with many examples, other ones each time."""
    command = [sys.executable, "-m", "pytest", f"tests/{part}", "-n", "auto"]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "long"}
    ran = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False)
    return {"passed": ran.returncode == 0, "end": ran.stdout[-2_000:] if ran.returncode else ""}


# Confidence ------------------------------------------------------------------------------------------------------

CONFIDENCE, SAMPLES, LOG_STEPS = 0.95, 200, 20_000


def confidence_parts() -> list[str]:
    """Return the worlds."""
    import causal_shaping as cs

    return list(cs.list_worlds())


def run_confidence(world: str) -> Figures:
    """Return how many of many samples of logs gave a ceiling below the optimum anywhere."""
    import causal_shaping as cs

    loaded = cs.load_world(world)
    best = loaded.model.optimum(horizon=loaded.horizon).values
    violated, distance = 0, 0.0
    for seed in range(SAMPLES):
        counts = cs.count([loaded.collect(name, steps=LOG_STEPS, seed=seed) for name in loaded.demonstrators])
        found = cs.value_ceilings(
            counts, loaded.horizon, loaded.model.reward_range[1], support="any", confidence=CONFIDENCE
        )
        order, _ = found.space.positions(loaded.space)
        gap = (found.values[:, order] - best)[:, ~loaded.model.terminal]
        violated += bool((gap < -1e-9).any())
        distance += float(gap[0].mean()) / SAMPLES
    return {"samples": SAMPLES, "violated": violated, "mean_distance": distance}


# Validity --------------------------------------------------------------------------------------------------------

PART = 500


def use_test_helpers() -> None:
    """Let the independent truth be imported, which the suite uses too."""
    tests = str(HERE.parent / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)


def validity_parts() -> list[str]:
    """Return the seeds of 10,000 random worlds, in parts."""
    return [f"{first}-{first + PART - 1}" for first in range(0, 10_000, PART)]


def run_validity(part: str) -> Figures:
    """Return how often bounds or masks of random worlds were wrong, where their assumptions were true."""
    use_test_helpers()
    from validity import tallied

    first, last = map(int, part.split("-"))
    return dict(tallied(range(first, last + 1)))


def small_worlds() -> list[str]:
    """Return the small worlds with rare outcomes."""
    use_test_helpers()
    from small_worlds import WORLDS

    return list(WORLDS)


def run_coverage(world: str) -> Figures:
    """Return how often all limits held at once in 400 samples of a small world, and how far they were."""
    use_test_helpers()
    from validity import covered

    return dict(covered(world, samples=400))


def covers(figures: Figures) -> bool:
    """Whether limits whose assumptions were true held in 95% of the samples; the default of `rarest` is no promise."""
    return all(
        min(found["ceilings"], found["floors"], found["masks"]) >= CONFIDENCE
        for name, found in figures["settings"].items()
        if "plug-in" not in name and "default" not in name
    )


# Study -----------------------------------------------------------------------------------------------------------


def study_parts() -> list[str]:
    """Return the study's worlds."""
    from causal_shaping.paper.study.plan import WORLDS

    return list(WORLDS)


def run_study_world(world: str) -> Figures:
    """Run every method of the study in a world and return where its potentials fall below the optimum."""
    from causal_shaping.paper.study.plan import Plan
    from causal_shaping.paper.study.run import run_study

    results = run_study(Plan(deep=False, only={"world": [world]}), WORK / "study")
    rows = [row for row in results.potentials if row["world"] == world]
    return {
        f"{coins}, {name}": {
            "potentials": len(chosen),
            "guaranteed": sum(bool(row["guaranteed"]) for row in chosen),
            "violated": sum(bool(row["violations"]) for row in chosen),
            "violated_although_guaranteed": sum(bool(row["guaranteed"] and row["violations"]) for row in chosen),
        }
        for coins, name in sorted({(row["coins"], row["name"]) for row in rows})
        for chosen in [[row for row in rows if (row["coins"], row["name"]) == (coins, name)]]
    }


CHECKS = {
    "properties": Check(
        "The suite's properties hold with 25 times as many examples, which differ from run to run.",
        1,
        property_files,
        run_properties,
        lambda parts: all(part["passed"] for part in parts.values()),
    ),
    "confidence": Check(
        f"Ceilings with confidence {CONFIDENCE:g} lie below the optimum in at most {1 - CONFIDENCE:.0%} of samples.",
        1,
        confidence_parts,
        run_confidence,
        lambda parts: all(part["violated"] <= (1 - CONFIDENCE) * part["samples"] for part in parts.values()),
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
    "study": Check(
        "No potential of the study that says it is guaranteed falls below the optimum: the full table of validity.",
        1,
        study_parts,
        run_study_world,
        lambda parts: not any(row["violated_although_guaranteed"] for part in parts.values() for row in part.values()),
    ),
}


def kept(name: str, folder: Path = FIGURES) -> dict[str, Figures]:
    """Return the figures of a check that are there already, by part."""
    path = folder / f"{name}.json"
    held = json.loads(path.read_text()) if path.exists() else {}
    return dict(held["parts"]) if held.get("version") == CHECKS[name].version else {}


def run(name: str, again: bool = False, folder: Path = FIGURES) -> bool:
    """Run the parts of a check that are missing, keep their figures, and return whether all is as promised."""
    check, done = CHECKS[name], {} if again else kept(name, folder)
    parts = check.parts()
    folder.mkdir(parents=True, exist_ok=True)
    for i, part in enumerate(parts, 1):
        if part in done:
            continue
        print(f"{name} {i}/{len(parts)}: {part}", flush=True)
        start = time.monotonic()
        done[part] = check.run(part)
        print(f"  {time.monotonic() - start:.0f} s", flush=True)
        temporary = folder / f".{name}.json"
        temporary.write_text(json.dumps({"version": check.version, "text": check.text, "parts": done}, indent=1) + "\n")
        temporary.replace(folder / f"{name}.json")
    passed = check.passes({part: done[part] for part in parts})
    print(f"{name}: {'as promised' if passed else 'NOT AS PROMISED'}. {check.text}")
    return passed


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; return the exit code."""
    lines = "\n".join(f"  {name:12} {check.text}" for name, check in CHECKS.items())
    parser = argparse.ArgumentParser(
        description=f"Run what is too long for the test suite; interrupted runs resume.\n\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="which to run; all if left out")
    parser.add_argument("--list", action="store_true", help="list the checks and how far each is")
    parser.add_argument("--again", action="store_true", help="run also what is there already")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.checks if name not in CHECKS]
    if unknown:
        parser.error(f"there is no check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    chosen = given.checks or list(CHECKS)
    if given.list:
        for name in chosen:
            parts = CHECKS[name].parts()
            print(f"{name:12} {sum(part in kept(name) for part in parts)} of {len(parts)} parts. {CHECKS[name].text}")
        return 0
    passed = [run(name, given.again) for name in chosen]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
