"""LaLonde's job training: a trial and a survey that contradict each other. See docs/tutorials/lalonde.md."""

import importlib.util
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import causal_shaping as cs
from causal_shaping.errors import ContradictionError

MOST_EARNED = 100_000.0
"""Nobody in such a programme earns more in a year, in dollars of 1978: an assumption. What was seen bounds nothing."""

COVARIATES = ("age", "educ", "black", "hisp", "marr", "nodegree", "re74", "re75")


def load():
    """Return the people of the trial, and those of the survey with the trained ones of the trial."""
    package = importlib.util.find_spec("causaldata")
    if package is None:
        raise SystemExit("This example needs the data of a package: pip install causaldata")
    folder = Path(package.submodule_search_locations[0])
    trial, others = (pd.read_stata(folder / name / f"{name}.dta") for name in ("nsw_mixtape", "cps_mixtape"))
    return people(trial), people(pd.concat([trial[trial.treat == 1], others]))


def people(frame):
    """Return a row per person as an episode of one step."""
    before = np.where(frame.re75 < 5_000, "little", "more")
    before = np.where((frame.re74 == 0) & (frame.re75 == 0), "nothing", before)
    frame = frame.assign(action=np.where(frame.treat == 1, "training", "none"), earned_before=before, person="anybody")
    frame = frame.assign(employed=(frame.re78 > 0).astype(float), step=0, terminated=True)
    return frame.assign(episode=np.arange(len(frame)))


def logs(frame, source, reward, state="person"):
    """Return the logs of one source: what a person earned before may be the state, or nothing is."""
    return cs.open_logs(frame, source=source, reward=reward, state=state)


def claimed(counts, most, **options):
    """Print what is claimed of each action, at 95% confidence, or why nothing is."""
    bounds = {"horizon": 1, "confidence": 0.95, "support": "any", **options}
    warnings.simplefilter("ignore", cs.AssumptionWarning)  # printed below
    try:
        ceilings = cs.value_ceilings(counts, reward_max=most, **bounds)
        floors = cs.value_floors(counts, reward_min=0.0, **bounds)
    except ContradictionError as error:
        print(f"  nothing is claimed. {error}")
        return
    for s, state in enumerate(counts.space.states):
        for x, action in enumerate(counts.space.actions):
            low, high = floors.q_values[0, s, x], ceilings.q_values[0, s, x]
            digits = 0 if most > 1 else 3
            print(f"  {action} for {state}: {low:,.{digits}f} to {high:,.{digits}f}")
    for caveat in ceilings.caveats:
        print(f"  Not guaranteed: {caveat}")


def main():
    """Run the tutorial."""
    trial, survey = load()
    for name, frame in (("trial", trial), ("survey", survey)):
        for action, rows in frame.groupby("action"):
            means = f"{rows.re78.mean():,.0f} dollars, {rows.employed.mean():.1%} employed"
            print(f"{name}, {action}: {len(rows):,} people, {means}")

    earnings = cs.count([logs(trial, "trial", "re78"), logs(survey, "survey", "re78")])
    employment = cs.count([logs(trial, "trial", "employed"), logs(survey, "survey", "employed")])
    print(cs.contradictions(earnings))
    print(cs.contradictions(employment))

    for what, counts, most in (("earnings", earnings, MOST_EARNED), ("employment", employment, 1.0)):
        for gamma in (1, 5, math.inf):
            print(f"{what}, trial at 1, survey at {gamma:g}:")
            claimed(counts, most, confounding={"trial": 1.0, "survey": gamma})
    print("employment, nobody says that the trial was one:")
    claimed(employment, 1.0)

    for name, frame in (("trial", trial), ("survey", survey)):
        print(cs.confounding_of(frame, COVARIATES, source=name, reward="re78", state="person"))

    past = {"reward": "employed", "state": "earned_before"}
    by_past = cs.count([logs(trial, "trial", **past), logs(survey, "survey", **past)])
    print(cs.contradictions(by_past))
    claimed(by_past, 1.0, confounding={"trial": 1.0})

    few = cs.Bins(edges=(1.0, 5_000.0, 10_000.0))
    alone = {"earnings": (cs.count(logs(trial, "trial", "re78"), reward_bins=few), MOST_EARNED)}
    alone["employment"] = (cs.count(logs(trial, "trial", "employed")), 1.0)
    for what, (counts, most) in alone.items():
        for gamma in (1, math.inf):
            print(f"{what}, trial alone, at {gamma:g}:")
            claimed(counts, most, confounding=gamma)


if __name__ == "__main__":
    main()
