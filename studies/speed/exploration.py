"""Regret in standard problems of exploration with a hidden gust, beside rlberry's UCBVI and PSRL.

    python -m studies.speed.exploration                          # all; resumes where it stopped
    python -m studies.speed.exploration Taxi --seeds 5 --again posterior

The problems are those of `tests/exploration_worlds.py`. All have the same budget of steps and the same measure: the sum
of V*_h(s) - Q*_h(s, x) over the steps, h counted to the horizon, in the units of the rewards. Settings of rivals are
chosen on tuning seeds, for each problem; ours are the defaults. Logs are of two demonstrators who see the gust, 20,000
steps each, others for each seed. Rivals read the same tables in environments of their own, which are made on first use
(`studies/speed/.rivals`); without a network they are left out. Figures are kept in `studies/speed/figures`.
"""

import argparse
import json
import subprocess
import sys
import time
import venv
import warnings
from pathlib import Path

import numpy as np
from exploration_worlds import PROBLEMS
from hard_worlds import counts_of

import causal_shaping as cs
from causal_shaping.learners.intervals import mean_interval

HERE = Path(__file__).parent

FIGURES, ENVIRONMENTS = HERE / "figures" / "exploration.json", HERE / ".rivals"
STEPS, LOG_SEED = 20_000, 5_000
TUNING_SEEDS, TUNING_SEEDS_OF = range(1_000, 1_003), {"taxi": range(1_000, 1_001)}
EVERY = {"taxi": 3}
"""A rival's run in the taxi takes a minute or two, so that only each third setting is tried there, on one seed."""

PACKAGES = {
    "rlberry-scool": ["rlberry-scool==0.7.3", "rlberry==0.7.3", "gymnasium==0.29.1", "numba"],
    "rlberry": ["rlberry==0.6.0", "gymnasium==0.29.1", "numba"],
}
PUBLISHED = [{"bonus": bonus} for bonus in (0.0, 0.03, 0.1, 1.0, 0.3, 3.0, 10.0)]
FACTORS = (
    *((0.1, 0.01), (0.0, 1.0), (0.1, 1.0), (0.0, 0.1), (1.0, 1.0), (0.1, 0.1)),
    *((0.03, 0.01), (0.3, 0.1), (0.3, 0.0), (0.1, 0.0)),
)
SHARED = [{"bonus": bonus, "shared": True, "lower_order": factor} for bonus, factor in FACTORS]
PRIORS = [{"prior": prior, "bernoulli": coin} for prior in (None, 0.1, 1.0) for coin in (False, True)]
RIVALS = {
    "UCBVI (rlberry-scool)": ("rlberry-scool", "ucbvi", PUBLISHED),
    "UCBVI (rlberry-scool), bonus shared": ("rlberry-scool", "ucbvi", SHARED),
    "PSRL (rlberry)": ("rlberry", "psrl", PRIORS),
}


# Ours ------------------------------------------------------------------------------------------------------------


def shaping(world, steps, seed):
    return cs.train(world, cs.Potential.zero(world), learner="q-ucb-shaping", steps=steps, seed=seed, record=True)


def without_logs(world, steps, seed):
    return cs.train(world, None, learner="posterior", steps=steps, seed=seed, record=True)


def with_logs(world, steps, seed):
    counts = counts_of(world, seed=LOG_SEED + seed)
    belief = cs.posterior(counts, horizon=world.horizon, reward_max=world.model.reward_range[1])
    return cs.train(world, belief, learner="posterior", steps=steps, seed=seed, record=True)


OURS = {
    "q-ucb-shaping, zero potential": shaping,
    "posterior, no logs": without_logs,
    "posterior, confounded logs": with_logs,
}


def regret_of(world, run):
    """Return the regret of a run with the steps of its episodes counted, whatever the learner assumed."""
    logs = run.logs
    return float(world.model.gaps(world.horizon)[logs.step, logs.state, logs.action].sum())


def at_random(world, steps):
    """Return what acting uniformly at random costs on average in so many steps."""
    model, horizon = world.model, world.horizon
    visits = model.occupancy(np.full((horizon, len(world.states), len(world.actions)), 1 / len(world.actions)), horizon)
    return float((visits * model.gaps(horizon)).sum() / visits.sum() * steps)


# Rivals ----------------------------------------------------------------------------------------------------------


def python_of(name):
    """Return the interpreter of an environment of rivals, which is made if it is not there."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
        (folder / "ready").touch()
    return python


def write_tables(world, folder):
    model, path = world.model, folder / f"{world.name}.npz"
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: getattr(model, name) for name in ("next_state", "reward", "noise", "terminal", "start")}
    np.savez(path, **tables, horizon=world.horizon, gaps=model.gaps(world.horizon))
    return path


def rival_regrets(rival, setting, path, steps, seeds):
    """Return the regret of each seed of a rival."""
    environment, agent, _ = RIVALS[rival]
    command = [python_of(environment), HERE / "rivals.py", agent, path, json.dumps(setting), steps, *seeds]
    ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"seed"')]
    if len(found) < len(seeds):
        raise RuntimeError(ran.stderr[-2_000:])
    return {str(one["seed"]): one["regret"] for one in found}


# All -------------------------------------------------------------------------------------------------------------


def run_ours(world, name, kept, steps, seeds):
    """Add the seeds of a learner of ours that are missing."""
    for seed in seeds:
        if str(seed) not in kept.setdefault("regret", {}):
            began = time.perf_counter()
            kept["regret"][str(seed)] = regret_of(world, OURS[name](world, steps, seed))
            kept["seconds"] = round(time.perf_counter() - began, 2)
            yield


def run_rival(path, name, kept, steps, seeds):
    """Choose the setting of a rival on tuning seeds, then add the seeds that are missing."""
    tried = kept.setdefault("tuning", {})
    for setting in RIVALS[name][2][:: EVERY.get(path.stem, 1)]:
        if json.dumps(setting) not in tried:
            found = rival_regrets(name, setting, path, steps, TUNING_SEEDS_OF.get(path.stem, TUNING_SEEDS))
            tried[json.dumps(setting)] = float(np.mean(list(found.values())))
            yield
    best = min(tried, key=tried.get)
    if kept.get("setting") != best:
        kept |= {"setting": best, "regret": {}}
    missing = [seed for seed in seeds if str(seed) not in kept["regret"]]
    if missing:
        began = time.perf_counter()
        kept["regret"] |= rival_regrets(name, json.loads(kept["setting"]), path, steps, missing)
        kept["seconds"] = round((time.perf_counter() - began) / len(missing), 2)
        yield


def _round(regret):
    return f"{regret:,.0f}" if regret >= 1_000 else f"{regret:.3g}"


def table_of(figures, seeds):
    """Return the figures as a table in Markdown."""
    names, problems = ["acting at random", *OURS, *RIVALS], [name for name in PROBLEMS if name in figures["problems"]]
    lines = ["| | " + " | ".join(problems) + " |", "|---|" + "---|" * len(problems)]
    for name in names:
        cells = []
        for problem in problems:
            kept = figures["problems"][problem].get(name, {})
            regrets = [value for seed, value in kept.get("regret", {}).items() if int(seed) in seeds]
            if name == "acting at random":
                cells.append(_round(figures["problems"][problem]["at random"]))
            elif not regrets:
                cells.append("")
            else:
                middle, low, high = mean_interval(np.array(regrets))
                fewer = "" if len(regrets) == len(seeds) else f"; {len(regrets)} seeds"
                cells.append(f"{_round(middle)} ({_round(low)} to {_round(high)}{fewer})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS), help=f"of {', '.join(PROBLEMS)}")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--again", nargs="*", default=[], help="beginnings of the names of learners to run again")
    asked = parser.parse_args()
    seeds = range(asked.seeds)
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {"steps": STEPS, "problems": {}}
    warnings.simplefilter("ignore")

    def save():
        FIGURES.parent.mkdir(exist_ok=True)
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")

    for problem in asked.problems:
        world, own = PROBLEMS[problem](), figures["problems"].setdefault(problem, {})
        own["at random"], path = at_random(world, STEPS), write_tables(world, ENVIRONMENTS / "tables")
        for name in [*OURS, *RIVALS]:
            if any(name.startswith(start) for start in asked.again):
                own.pop(name, None)
            kept = own.setdefault(name, {})
            where, run = (world, run_ours) if name in OURS else (path, run_rival)
            try:
                for _ in run(where, name, kept, STEPS, seeds):
                    save()
            except (cs.CausalShapingError, AttributeError, RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{problem}, {name}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
                own.pop(name, None)
                continue
            regrets = list(kept["regret"].values())
            print(f"{problem}, {name}: regret {_round(np.mean(regrets))} {kept.get('setting', '')}", flush=True)
    save()
    text = f"Regret over {STEPS:,} steps, mean of {asked.seeds} seeds (95% interval).\n\n{table_of(figures, seeds)}\n"
    FIGURES.with_suffix(".md").write_text(text)
    print("\n" + text)


if __name__ == "__main__":
    main()
