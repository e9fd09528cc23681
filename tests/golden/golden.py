"""Golden results: what version 0.2 computes, kept in small files, so that a rewrite can be compared.

    python tests/golden/golden.py --compare             everything, and the largest difference by kind
    python tests/golden/golden.py --compare bounds --worlds tiny,costs   some of it
    python tests/golden/golden.py --write learners      make entries again; say why in the commit

Frozen kinds are compared entry by entry. Kinds that depend on a seed are compared in distribution:
the suite runs fewer seeds than the files hold.
"""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))

import adapter
from inputs import FILES, LOGS, PAPER, RANDOM

HERE = Path(__file__).parent
TOLERANCE = 1e-9
"""Of frozen numbers, relative to the larger of 1 and the number."""

SUM, SUM_ROUNDING = 2, 1e-14
"""Where the sum of rewards stands in an entry of counts, and how far engines may round it differently."""

LEVEL = 0.001
"""The chance that any comparison in distribution fails although nothing changed."""

SEEDS = {"fitted": 5, "posterior": 20, "learners": 20}
ALL_SEEDS = {"fitted": 40, "posterior": 200, "learners": 200}
"""How many seeds the suite runs, and how many the files hold; a fit takes a second."""

Results = Iterator[tuple[str, np.ndarray]]

HORIZONS = {"windy-empty": 15, "walking-robot": 30}
WORLDS = (*PAPER, *RANDOM)
SMALLEST = ("tiny", "costs", "unknown-by-step")
"""The worlds for changed code that runs without compiling."""

COUNTING: dict[str, dict] = {
    "by-step": {"step_indexed": True},
    "unknown-by-step": {"step_indexed": True},
    "reward-bins": {"reward_bins": [-0.5, 0.0, 0.5]},
    "inadmissible": {"admissible": lambda s, x: int(s[1:]) % 3 != int(x[1:])},
    "few-rows": {"states": [f"s{i}" for i in range(9)], "actions": [f"x{i}" for i in range(4)]},
    "one-source": {"complete": True},
}
DISCOUNTS = {"both-signs": 0.9, "loops": 0.9}
SUPPORTS = ("any", "observed", "observed-action", "own")
CONFIDENCES = (None, 0.95)


def rows_of(world: str) -> dict[str, list]:
    return pq.read_table(LOGS / f"{world}.parquet").to_pydict()


def counts_of(world: str, **more):
    columns = {"sources": list(dict.fromkeys(rows_of(world)["source"]))}
    return adapter.count(LOGS / f"{world}.parquet", columns, **COUNTING.get(world, {}), **more)


def horizon_of(world: str) -> int:
    return RANDOM[world][3] if world in RANDOM else HORIZONS.get(world, 20)


def rewards_of(world: str) -> tuple[float, float]:
    rewards = rows_of(world)["reward"]
    return max(rewards), min(rewards)


def gammas_of(counts) -> dict[str, object]:
    mixed = {name: 1.0 if i == 0 else 3.0 for i, name in enumerate(counts.sources)}
    return {"1": 1.0, "3": 3.0, "inf": math.inf, "mixed": mixed}


# --- what is computed, by kind: functions from a world to named arrays ------------------------

OPENING: dict[str, tuple[dict, dict]] = {
    "plain.parquet": ({}, {}),
    "plain.csv": ({}, {}),
    "zipped.csv.gz": ({}, {}),
    "zstd.csv.zst": ({}, {}),
    "no-next-state.csv": ({}, {"step_indexed": True}),
    "missing.csv": ({"missing": "unknown"}, {}),
    "numbers.csv": (
        {"state": ["age", "stage"], "bins": {"age": [15.0, 35.0]}},
        {"reward_bins": [-0.5, 0.0, 0.5]},
    ),
    "own-names.csv": (
        {
            "episode": "patient", "step": "day", "first_step": 1, "state": ["half", "rest"],
            "action": "drug", "reward": "-cost", "terminated": {"outcome": ["cured"]},
            "truncated": "discharged", "source": "ward",
        },
        {"actions": ["x0", "x1", "x2"]},
    ),
    "by-day": ({"partitions": ["day"]}, {}),
}  # fmt: skip


def files(name: str) -> Results:
    columns, options = OPENING[name]
    where = FILES / name if "." in name else sorted((FILES / name).glob("*/*.parquet"))
    yield from listed(name, adapter.count(where, columns, **options))


def counts(world: str) -> Results:
    yield from listed(world, counts_of(world))


def listed(name: str, counted) -> Results:
    for *key, low, high, total, n in adapter.outcomes(counted):
        yield "|".join(map(str, [name, *key, low])), np.array([low, high, total, n])


def settings(world: str, counted) -> Iterator[tuple[str, dict]]:
    """Yield the settings of bounds: a name and arguments."""
    for support in SUPPORTS:
        for name, gamma in gammas_of(counted).items():
            for confidence in CONFIDENCES:
                what = {"support": support, "gamma": gamma, "confidence": confidence}
                yield f"{world}|{support}|{name}|{confidence}", what | {"discount": DISCOUNTS.get(world, 1.0)}
    if world == "loops":
        for support in SUPPORTS:
            what = {"support": support, "gamma": math.inf, "discount": 0.9, "stationary": True}
            yield f"{world}|{support}|inf|stationary", what


def bounds(world: str) -> Results:
    """Ceilings and floors: the first step whole, a random projection of each later step."""
    counted, horizon, ends = counts_of(world), horizon_of(world), rewards_of(world)
    for name, what in settings(world, counted):
        for side, reward in zip(("ceilings", "floors"), ends, strict=True):
            found = adapter.bound(counted, side, horizon, reward, **what)
            if isinstance(found, str):
                yield f"{name}|{side}", np.zeros(0)
                continue
            for kind, array in adapter.arrays(found).items():
                yield f"{name}|{side}|{kind}", np.concatenate([array[0].ravel(), projections(array[1:])])


def more_ceilings(world: str) -> Results:
    """Ceilings with settings of their own: the published bound, a limit of values, rare outcomes."""
    counted, horizon, (high, _) = counts_of(world), horizon_of(world), rewards_of(world)
    discount = DISCOUNTS.get(world, 1.0)
    chosen = {
        "paper": {"method": "paper"},
        "value_max": {"value_max": 0.5 * max(high, 0.0) * horizon},
        "rarest": {"confidence": 0.8, "rarest": 0.1},
    }
    for name, what in chosen.items():
        found = adapter.bound(counted, "ceilings", horizon, high, "observed", math.inf, discount=discount, **what)
        for kind, array in adapter.arrays(found).items():
            yield f"{world}|{name}|{kind}", np.concatenate([array[0].ravel(), projections(array[1:])])


def projections(array: np.ndarray) -> np.ndarray:
    """Return one number a step that changes with every entry."""
    flat = array.reshape(len(array), math.prod(array.shape[1:]))
    weights = np.random.default_rng(0).uniform(0.5, 1.5, flat.shape[1])
    return np.nan_to_num(flat, nan=-77.0, posinf=1e3, neginf=-1e3) @ weights


def masks(world: str) -> Results:
    counted, horizon, ends = counts_of(world), horizon_of(world), rewards_of(world)
    for name, what in settings(world, counted):
        pair = [
            adapter.bound(counted, side, horizon, reward, **what)
            for side, reward in zip(("ceilings", "floors"), ends, strict=True)
        ]
        if not any(isinstance(one, str) for one in pair):
            never = adapter.mask(*pair, plug_in=True)
            yield name, np.packbits(never.ravel()).astype(float)


def sensitivity(world: str) -> Results:
    counted, horizon, (high, low) = counts_of(world), horizon_of(world), rewards_of(world)
    for confidence in CONFIDENCES:
        options = {"confidence": confidence, "plug_in": confidence is None}
        found = adapter.sensitivity(counted, horizon, high, low, **options)
        for key, array in found.items():
            yield f"{world}|{confidence}|{key}", array.ravel()


def coverage(world: str) -> Results:
    for key, array in adapter.coverage(counts_of(world)).items():
        yield f"{world}|{key}", array


def contradictions(world: str) -> Results:
    for key, array in adapter.contradictions(counts_of(world)).items():
        yield f"{world}|{key}", array


def shaped(world: str) -> Results:
    """Shaped rewards of recorded episodes, in worlds whose steps are all known."""
    counted, horizon, (high, _) = counts_of(world), horizon_of(world), rewards_of(world)
    ceilings = adapter.bound(counted, "ceilings", horizon, high, "observed", math.inf)
    rows = {key: column[:300] for key, column in rows_of(world).items()}
    for by_step in (False, True):
        options = {"time_limit": "terminal"} if by_step else {"time_limit": "bootstrap"}
        rewards = adapter.shaped_rewards(ceilings, rows, step_indexed=by_step, **options)
        yield f"{world}|{by_step}", rewards


FITTED_CASES = {
    "costs-in-a-plane": {"horizon": 5, "state": ["x", "y"]},
    "goal-on-a-line": {"horizon": 5, "state": ["x"]},
}
SMALL_FIT = {"members": 1, "trees": 2}


def fitted(world: str, seed: int) -> Results:
    what = dict(FITTED_CASES[world])
    state = what.pop("state")
    grid = np.stack(np.meshgrid(*[np.linspace(0.1, 0.9, 3)] * len(state)), axis=-1).reshape(-1, len(state))
    rewards = rows_of(world)["reward"]
    for side, reward in (("ceilings", max(rewards)), ("floors", min(rewards))):
        path = LOGS / f"{world}.parquet"
        found = adapter.fitted(path, state, grid, side=side, reward=reward, seed=seed, **what, **SMALL_FIT)
        for point, value in zip(grid, found, strict=True):
            yield f"{world}|{side}|{point.tolist()}", np.array([value])


POSTERIORS = ("lavacross-easy", "both-signs", "costs", "inadmissible", "few-rows", "walking-robot")


@functools.cache
def belief_of(world: str) -> tuple:
    counted = counts_of(world)
    return adapter.believed(counted, horizon_of(world), rewards_of(world)[0]), counted


def posterior(world: str, seed: int) -> Results:
    values = adapter.drawn_values(*belief_of(world), horizon_of(world), seed)
    for i, value in enumerate(values):
        yield f"{world}|{i}", np.array([value])


TRAINED = (
    ("lavacross-easy", "posterior", "posterior"),
    ("lavacross-easy", "posterior", "nothing"),
    ("lavacross-hard", "posterior", "posterior"),
    ("walking-robot", "posterior", "posterior"),
    ("lavacross-easy", "q-ucb-shaping", "ceilings"),
    ("lavacross-hard", "q-ucb-shaping", "nothing"),
    ("lavacross-easy", "q-ucb", "nothing"),
)
STEPS = 2_000


def learners(case: tuple[str, str, str], seed: int) -> Results:
    for key, value in adapter.trained(*case, STEPS, seed).items():
        yield f"{'|'.join(case)}|{key}", np.array([value])


FROZEN: dict[str, tuple[Callable[[str], Results], tuple]] = {
    "files": (files, tuple(OPENING)),
    "counts": (counts, WORLDS),
    "bounds": (bounds, WORLDS),
    "more ceilings": (more_ceilings, WORLDS),
    "masks": (masks, WORLDS),
    "sensitivity": (sensitivity, ("lavacross-hard", "walking-robot", *RANDOM)),
    "coverage": (coverage, WORLDS),
    "contradictions": (contradictions, WORLDS),
    "shaped": (shaped, (*PAPER, "both-signs", "costs", "tiny")),
}
SEEDED: dict[str, tuple[Callable[..., Results], tuple]] = {
    "fitted": (fitted, tuple(FITTED_CASES)),
    "posterior": (posterior, POSTERIORS),
    "learners": (learners, TRAINED),
}


# --- files and comparisons --------------------------------------------------------------------


def frozen(kind: str, worlds: tuple = ()) -> dict[str, np.ndarray]:
    compute, cases = FROZEN[kind]
    return dict(row for case in cases if not worlds or case in worlds for row in compute(case))


def seeded(kind: str, seeds: int) -> dict[str, np.ndarray]:
    """Return a number for each seed, by key."""
    compute, cases = SEEDED[kind]
    result: dict[str, list] = {}
    for case in cases:
        for seed in range(seeds):
            for key, value in compute(case, seed):
                result.setdefault(key, []).append(float(value[0]))
    return {key: np.array(values) for key, values in result.items()}


def path_of(kind: str) -> Path:
    return HERE / "results" / f"{kind}.parquet"


def write(kind: str, results: dict[str, np.ndarray]) -> None:
    path_of(kind).parent.mkdir(exist_ok=True)
    table = pa.table({"key": list(results), "values": pa.array(list(results.values()), pa.list_(pa.float64()))})
    pq.write_table(table, path_of(kind), compression="zstd", compression_level=19)


def read(kind: str) -> dict[str, np.ndarray]:
    rows = pq.read_table(path_of(kind))
    return {key: np.array(v, dtype=float) for key, v in zip(*rows.to_pydict().values(), strict=True)}


def difference(new: np.ndarray, old: np.ndarray) -> float:
    """Return the largest difference relative to the larger of 1 and the old number; NaN equals NaN."""
    if new.shape != old.shape:
        return math.inf
    same = (new == old) | (np.isnan(new) & np.isnan(old))
    with np.errstate(invalid="ignore"):
        gaps = np.where(same, 0.0, np.abs(new - old) / np.maximum(1.0, np.abs(old)))
    return float(np.nan_to_num(gaps, nan=math.inf).max(initial=0.0))


def compare_frozen(kind: str, worlds: tuple = ()) -> tuple[int, float, list[str]]:
    """Return how many numbers were compared, the largest difference, and the keys that differ."""
    old = {key: v for key, v in read(kind).items() if not worlds or key.split("|")[0] in worlds}
    new = frozen(kind, worlds)
    largest, differing = 0.0, [f"{key} is missing" for key in old.keys() - new.keys()]
    differing += [f"{key} is new" for key in new.keys() - old.keys()]
    for key in new.keys() & old.keys():
        limit, gap = TOLERANCE, difference(new[key], old[key])
        if kind in ("files", "counts"):  # exactly, but for sums of rewards in bins, whose order is the engine's
            exact = difference(np.delete(new[key], SUM), np.delete(old[key], SUM))
            limit = 0.0 if exact else SUM_ROUNDING
        if kind == "contradictions":  # p-values are promised in level and power, which other tests look at
            gap = difference(new[key][1:], old[key][1:])
        largest = max(largest, gap)
        if gap > limit:
            differing.append(f"{key} differs by {gap:.3g}")
    return sum(v.size for v in old.values()), largest, sorted(differing)


def first_difference(kind: str, worlds: tuple) -> str | None:
    """Return the first entry that differs, or None; nothing is computed beyond it."""
    compute, cases = FROZEN[kind]
    old = {key: v for key, v in read(kind).items() if not worlds or key.split("|")[0] in worlds}
    for case in cases:
        for key, value in compute(case) if not worlds or case in worlds else ():
            if key not in old or difference(value, old.pop(key)) > TOLERANCE:
                return f"{kind}: {key} differs"
    return f"{kind}: {next(iter(old))} is missing" if old else None


def p_value(new: np.ndarray, old: np.ndarray) -> float:
    """Return the chance of so large a difference between two samples of one distribution."""
    if np.array_equal(new, old[: len(new)], equal_nan=True):
        return 1.0
    if np.ptp(new) < 1e-12 and np.ptp(old) < 1e-12:
        return float(abs(new[0] - old[0]) <= TOLERANCE * max(1.0, abs(old[0])))
    means = stats.ttest_ind(new, old, equal_var=False).pvalue
    return float(min(1.0, 2 * min(means, stats.ks_2samp(new, old).pvalue)))


def compare_seeded(kind: str, seeds: int) -> tuple[int, float, list[str]]:
    """Return how many samples were compared, the smallest corrected p-value, and the keys that differ."""
    old, new = read(kind), seeded(kind, seeds)
    differing = sorted(f"{key} is missing or new" for key in old.keys() ^ new.keys())
    shared = sorted(old.keys() & new.keys())
    everything = sum(len(read(name)) for name in SEEDED)
    corrected = {key: min(1.0, everything * p_value(new[key], old[key])) for key in shared}
    differing += [f"{key} differs, p = {p:.2g}" for key, p in corrected.items() if p < LEVEL]
    return len(shared), min(corrected.values(), default=1.0), differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join([*FROZEN, *SEEDED])}; all if none is named")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--write", action="store_true", help="make the files again")
    how.add_argument("--compare", action="store_true", help="compare with the files; exit with 1 if they differ")
    how.add_argument("--first", action="store_true", help="the same for frozen kinds, up to the first difference")
    parser.add_argument("--worlds", default="", help="compare only these worlds, for example tiny,costs")
    arguments = parser.parse_args()
    worlds = tuple(filter(None, arguments.worlds.split(",")))
    failed = False
    for kind in arguments.kinds or [*FROZEN, *SEEDED]:
        if arguments.first:
            if found := first_difference(kind, worlds):
                print(found)
                return 1
            continue
        if arguments.write:
            results = frozen(kind) if kind in FROZEN else seeded(kind, ALL_SEEDS[kind])
            write(kind, results)
            print(f"{kind}: {sum(v.size for v in results.values()):,} numbers", flush=True)
            continue
        if kind in FROZEN:
            n, largest, differing = compare_frozen(kind, worlds)
            print(f"{kind}: {n:,} numbers, largest difference {largest:.2g}", flush=True)
        else:
            n, smallest, differing = compare_seeded(kind, ALL_SEEDS[kind])
            print(f"{kind}: {n:,} samples, smallest corrected p-value {smallest:.2g}", flush=True)
        failed |= bool(differing)
        print("".join(f"  {line}\n" for line in differing[:20]), end="")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
