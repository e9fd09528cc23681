"""The tables of the study, each a function of the results.

- `all_tables`: every table, by name.
- `relative_regret`, `ablation_regret`: the numbers that figures and findings show as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from causal_shaping._progress import Progress, no_progress
from causal_shaping.learners.intervals import Interval, bootstrap_interval, mean, mean_interval
from studies.pages import NOTHING, Table, interval_text
from studies.paper.plan import (
    ADDED_METHODS,
    BASELINE,
    FACTORS,
    METHODS,
    PAPER_METHODS,
    POTENTIALS,
    PRINTED,
    ROBOT,
    WORLDS,
    ablation_name,
)
from studies.paper.robot import robot_tables
from studies.paper.run import Results
from studies.paper.theory_tables import examined, theory_tables
from studies.statistics import interquartile_mean, ratio_of_means

ROWS = tuple(method.name for method in (*PAPER_METHODS, *ADDED_METHODS))
AIM = 0.7
"""The aim for ceilings: regret of at most this share of that with a zero potential."""

INFORMED: Mapping[str, str] = {
    "joint": BASELINE,
    "joint-plain": BASELINE,
    "guess": BASELINE,
    "posterior": "posterior-no-logs",
    "posterior-confounded": "posterior-no-logs",
}
"""Methods with logs, and the same learner without."""

Cell = Callable[[str, str, str], tuple[str, dict[str, Any]] | None]


def all_tables(results: Results, *, progress: Progress = no_progress) -> dict[str, Table]:
    """Return every table for which there are results, by name.

    Args:
        results: what was run.
        progress: called before each world whose theory is examined, and before the tables of the runs.
    """
    ran = {world for world, _ in results.variants}
    theories = [ROBOT, *(world for world in WORLDS if world in ran)]
    for done, world in enumerate(theories):  # remembered, for the tables of the theory
        progress(done, len(theories) + 1, f"Examining the theory of {world}")
        examined(world)
    progress(len(theories), len(theories) + 1, "Tables of the runs")
    tables = [
        printed_table(results),
        optimal_table(results),
        regret_table(results, "standing"),
        regret_table(results, "once"),
        relative_table(results),
        ablation_table(results),
        potential_table(results),
        *robot_tables(),
        *theory_tables(theories),
    ]
    return {table.name: table for table in tables if table.rows}


def variant_title(world: str, coins: str, results: Results) -> str:
    """Return the head of a column: the world, and its coin rule if both were run."""
    return world if (world, "once") not in results.variants else f"{world}\ncoins {coins}"


def variants_of(results: Results, coins: str) -> list[tuple[str, str]]:
    """Return the worlds that were run with a coin rule, each with that rule."""
    return [variant for variant in results.variants if variant[1] == coins]


def _record(world: str, coins: str, method: str, interval: Interval, **more: Any) -> dict[str, Any]:
    estimate, low, high = interval
    return {"world": world, "coins": coins, "method": method, "mean": estimate, "low": low, "high": high, **more}


def _grid(
    results: Results, methods: Iterable[str], variants: Sequence[tuple[str, str]], cell: Cell
) -> tuple[list[str], list[list[str]], list[dict[str, Any]]]:
    """Return heads, rows and records of a table of methods by worlds; empty rows are left out."""
    rows, records = [], []
    for method in methods:
        found = [
            cell(world, coins, method) if results.runs_of(world, method, coins) else None for world, coins in variants
        ]
        if any(found):
            rows.append([METHODS[method].title, *(NOTHING if item is None else item[0] for item in found)])
            records += [item[1] for item in found if item is not None]
    return ["", *(variant_title(world, coins, results) for world, coins in variants)], rows, records


def printed_table(results: Results) -> Table:
    """The paper's table of optimal ratios beside ours."""

    def cell(world: str, coins: str, method: str) -> tuple[str, dict[str, Any]]:
        interval = mean_interval(results.values(world, method, "argmax_match"))
        printed = PRINTED[method].get(world)
        record = _record(world, coins, method, interval, printed=printed)
        if printed is None:
            return interval_text(interval, 2), record
        difference = interval[0] - printed
        signed = f"{round(difference, 2) + 0.0:+.2f}"  # no difference is +0
        text = f"{interval_text(interval, 2)}\nprinted {printed:.2f}, {signed}"
        return text, record | {"difference": difference}

    return Table(
        "optimal-ratios",
        "Optimal ratios, as the paper counts them",
        "The share of states whose learned action is the first optimal one (argmax match): ours with the 95% interval "
        "of the mean over seeds, then the printed value and the difference. Standing coins.",
        *_grid(results, [method.name for method in PAPER_METHODS], variants_of(results, "standing"), cell),
        "coins=standing",
    )


def optimal_table(results: Results) -> Table:
    """The share of states whose action is truly optimal."""

    def cell(world: str, coins: str, method: str) -> tuple[str, dict[str, Any]]:
        interval = mean_interval(results.values(world, method, "optimal", coins))
        return interval_text(interval, 2), _record(world, coins, method, interval)

    return Table(
        "optimal-share",
        "States with a truly optimal action",
        "The share of states, visited or not, whose learned action costs less than 0.001. Several actions can be "
        "optimal; the first of them is no better than the others.",
        *_grid(results, ROWS, results.variants, cell),
    )


def regret_table(results: Results, coins: str) -> Table:
    """Regret at the budget."""

    def cell(world: str, coins: str, method: str) -> tuple[str, dict[str, Any]]:
        values = results.values(world, method, "regret", coins)
        interval, middle = mean_interval(values), bootstrap_interval(interquartile_mean, values)
        more = dict(zip(("iqm", "iqm_low", "iqm_high"), middle, strict=True))
        seeds = " ".join(f"{value:.6g}" for value in values)
        digits = 0 if interval[0] >= 1000 else 1
        text = f"{interval_text(interval, digits)}\nIQM {middle[0]:.{digits}f}"
        return text, _record(world, coins, method, interval, **more, by_seed=seeds)

    return Table(
        f"regret-{coins}",
        f"Regret at the budget, coins {coins}",
        "The sum over all steps of V*(s) - Q*(s, x): mean over seeds with its 95% interval, and the interquartile "
        "mean. For BCQ, which does not learn online, the expected regret of following its policy. The regret of every "
        "seed is in the CSV file.",
        *_grid(results, ROWS, variants_of(results, coins), cell),
        f"coins={coins}",
    )


def relative_regret(results: Results, world: str, coins: str, method: str, baseline: str) -> Interval:
    """Return the mean regret of a method as a share of another's, paired by seed, with its interval."""
    one, other = (
        {row["seed"]: row["regret"] for row in results.runs_of(world, name, coins)} for name in (method, baseline)
    )
    both = sorted(set(one) & set(other))
    if not both:  # they share no seeds
        return bootstrap_interval(ratio_of_means, np.array([*one.values()]), np.array([*other.values()]))
    pairs = (np.array([runs[seed] for seed in both]) for runs in (one, other))
    return bootstrap_interval(ratio_of_means, *pairs, paired=True)


def relative_table(results: Results) -> Table:
    """Regret with logs as a share of the regret without."""

    def cell(world: str, coins: str, method: str) -> tuple[str, dict[str, Any]] | None:
        if not results.runs_of(world, BASELINE, coins):
            return None
        interval = relative_regret(results, world, coins, method, BASELINE)
        text, record = interval_text(interval, 2), _record(world, coins, method, interval, aim_met=interval[0] <= AIM)
        own = INFORMED[method]
        if own != BASELINE and results.runs_of(world, own, coins):
            alike = relative_regret(results, world, coins, method, own)
            text += f"\nown {interval_text(alike, 2)}"
            record |= {"own_baseline": own, "own_mean": alike[0], "own_low": alike[1], "own_high": alike[2]}
        return text, record

    return Table(
        "relative-regret",
        "Regret with logs, as a share of the regret without",
        "First compared with the printed learner and a potential of zero, which needs no logs; the aim for ceilings is "
        f"at most {AIM}. Then (own) with the same learner without logs, where that is another one. In brackets the 95% "
        "interval over seeds.",
        *_grid(results, INFORMED, results.variants, cell),
        "method=" + ",".join(dict.fromkeys((BASELINE, *INFORMED.values(), *INFORMED))),
    )


def ablation_regret(results: Results, *levels: Any) -> Interval | None:
    """Return the regret of a combination over that of the zero potential, as a geometric mean over worlds and seeds.

    The seeds are those that all worlds have; None without runs.
    """
    name = ablation_name(*levels)
    tables = [
        {what: {row["seed"]: row["regret"] for row in results.runs_of(world, what, coins)} for what in (name, BASELINE)}
        for world, coins in variants_of(results, "standing")
    ]
    seeds = sorted(set.intersection(*(set(runs) for table in tables for runs in table.values()))) if tables else []
    if not seeds:
        return None
    regrets = np.array([[[table[what][seed] for table in tables] for seed in seeds] for what in (name, BASELINE)])
    logs = np.log(np.maximum(regrets, 1e-12))  # [what, seeds, worlds]
    middle, low, high = np.exp(bootstrap_interval(mean, logs[0] - logs[1].mean(axis=0))).tolist()
    return middle, low, high


def ablation_table(results: Results) -> Table:
    """The contribution of each part: all combinations of initial value, bonus, clip and potential."""
    rows, records = [], []
    *factors, potentials = FACTORS.values()
    for levels in itertools.product(*factors):
        cells = []
        for potential in potentials:
            found = ablation_regret(results, *levels, potential)
            cells.append(NOTHING if found is None else interval_text(found, 2))
            if found is not None:
                numbers = dict(zip(("relative_regret", "low", "high"), found, strict=True))
                records.append(dict(zip(FACTORS, (*levels, potential), strict=True)) | numbers)
        if set(cells) != {NOTHING}:
            rows.append(["initial {}, bonus {}, clip {}".format(*levels), *cells])
    return Table(
        "ablation",
        "Which part earns what",
        "Regret as a share of the zero potential's under the printed learner: the geometric mean over worlds and "
        "seeds, with its 95% stratified interval. Standing coins. Initial value, bonus and clip at `horizon` with a "
        "potential of zero are Q-UCB; initial zero, bonus phi-max, clip potential and the paper's bound are the "
        "printed method.",
        ["", *(f"potential {name}" for name in potentials)],
        rows,
        records,
        "coins=standing",
    )


def potential_table(results: Results) -> Table:
    """Distance, validity and verdict of potentials."""
    rows, records = [], []
    below = ("violations", "violations_all_steps", "violations_stationary")
    for (world, coins), name in itertools.product(results.variants, POTENTIALS):
        found = results.potentials_of(world, name, coins)
        if not found:
            continue
        distance = mean_interval(np.array([row["mean_distance"] for row in found]))
        means = {what: _mean([row[what] for row in found]) for what in ("largest_distance", "correlation", *below)}
        verdict = _verdict([row["informative"] for row in found]) if found[0]["verdict"] else NOTHING
        title = f"{variant_title(world, coins, results)}: {POTENTIALS[name]}".replace("\n", ", ")
        digits = dict(zip(means, (2, 2, 1, 1, 1), strict=True))
        cells = [NOTHING if means[what] is None else f"{means[what]:.{digits[what]}f}" for what in means]
        rows.append([title, interval_text(distance, 3), *cells, verdict])
        numbers = dict(zip(("mean_distance", "low", "high"), distance, strict=True))
        del means["largest_distance"]
        about = {"states": found[0]["states"], "guaranteed": found[0]["guaranteed"], "verdict": verdict}
        records.append({"world": world, "coins": coins, "potential": name, **numbers, **means, **about})
    return Table(
        "potentials",
        "The potentials: distance, validity, verdict",
        "Distance to the first step's V* over the states in which episodes start, as a mean over seeds with "
        "its interval; its largest value; correlation with V*; violations, the number of states where a "
        "ceiling lies below V* (a floor above): at the first step, summed over all steps, and against V* over "
        "an infinite horizon; and the verdict of the ceilings on their usefulness. Violations of a plug-in "
        "ceiling are sampling error; behaviour values, BCQ and the best guess are not bounds. The randomised "
        "source is the demonstrator that acts at random, declared unconfounded, where a world has one; in the "
        "mazes, which have none, a trial of as many steps is added. Values up to 0: 0 is a known upper bound "
        "on values, which is true here over an infinite horizon, and which a potential of zero assumes as "
        "well.",
        ["", "mean distance", "largest", "correlation", "violations", "of all steps", "stationary", "verdict"],
        rows,
        records,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over the seeds that have a value; None if none has."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _verdict(informative: Sequence[bool | None]) -> str:
    """Return the verdict of ceilings on their own usefulness, over seeds."""
    words = {True: "help", None: "doubtful", False: "no help"}
    counts = {word: informative.count(item) for item, word in words.items()}
    if len(informative) in counts.values():
        return max(counts, key=lambda word: counts[word])
    return ", ".join(f"{word} {count}" for word, count in counts.items())
