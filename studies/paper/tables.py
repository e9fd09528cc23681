"""The tables of the study, each a function of the results.

- `all_tables`: every table, by name; `Table`: one of them, which can be written as CSV and as LaTeX.
- `relative_regret`, `ablation_regret`: the numbers that figures show as well.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from causal_shaping._progress import Progress, no_progress
from causal_shaping.data.arrays import FloatArray
from causal_shaping.learners.intervals import Interval, bootstrap_interval, mean, mean_interval
from causal_shaping.worlds import load_world
from causal_shaping.worlds.world import COINS
from studies.pages import NOTHING, Table as Table, interval_text
from studies.paper.materials import Materials
from studies.paper.metrics import NEARLY_OPTIMAL, bound_facts
from studies.paper.plan import (
    ADDED_METHODS,
    BASELINE,
    FACTORS,
    LOG_STEPS,
    METHODS,
    PAPER_METHODS,
    POTENTIALS,
    PRINTED,
    QUICK,
    ROBOT,
    WORLDS,
    ablation_name,
)
from studies.paper.robot import robot_tables
from studies.paper.run import Results
from studies.paper.theory_tables import examined, theory_tables
from studies.statistics import interquartile_mean, ratio_of_means

ROWS = tuple(method.name for method in (*PAPER_METHODS, *ADDED_METHODS))
GAMMAS = (1.5, 2.0, 3.0, 5.0, 10.0, 30.0, math.inf)
AIM = 0.7
"""The aim for ceilings: regret of at most this share of that with a zero potential."""

SAMPLED = {"posterior": "posterior-no-logs", "posterior-confounded": "posterior-no-logs"}
"""Methods that start from a posterior, and the same learner without logs."""

INFORMED: Mapping[str, str] = {"joint": BASELINE, "joint-plain": BASELINE, "guess": BASELINE, **SAMPLED}
"""Methods with logs, and the same learner without."""


def _signed(value: float, digits: int = 2) -> str:
    """Return a difference with its sign; no difference is +0."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def variant_title(world: str, coins: str, results: Results) -> str:
    """Return the head of a column: the world, and its coin rule if both were run."""
    return world if (world, "once") not in results.variants else f"{world}\ncoins {coins}"


def _record(world: str, coins: str, method: str, interval: Interval, **more: Any) -> dict[str, Any]:
    estimate, low, high = interval
    return {"world": world, "coins": coins, "method": method, "mean": estimate, "low": low, "high": high, **more}


def _grid(
    results: Results,
    methods: Iterable[str],
    variants: Sequence[tuple[str, str]],
    cell: Callable[[str, str, str], tuple[str, dict[str, Any]] | None],
) -> tuple[list[str], list[list[str]], list[dict[str, Any]]]:
    """Return heads, rows and records of a table of methods by worlds; empty rows are left out."""
    columns = ["", *(variant_title(world, coins, results) for world, coins in variants)]
    rows, records = [], []
    for method in methods:
        found = [
            cell(world, coins, method) if results.runs_of(world, method, coins) else None for world, coins in variants
        ]
        if any(found):
            rows.append([METHODS[method].title, *(NOTHING if item is None else item[0] for item in found)])
            records += [item[1] for item in found if item is not None]
    return columns, rows, records


def _variants(results: Results, coins: str = "standing") -> list[tuple[str, str]]:
    """Return the worlds that were run with a coin rule, each with that rule."""
    return [variant for variant in results.variants if variant[1] == coins]


def printed_table(results: Results) -> Table:
    """The paper's table of optimal ratios beside ours."""

    def cell(world: str, coins: str, method: str) -> tuple[str, dict[str, Any]]:
        interval = mean_interval(results.values(world, method, "argmax_match"))
        printed = PRINTED[method].get(world)
        record = _record(world, coins, method, interval, printed=printed)
        if printed is None:
            return interval_text(interval, 2), record
        difference = interval[0] - printed
        text = f"{interval_text(interval, 2)}\nprinted {printed:.2f}, {_signed(difference)}"
        return text, record | {"difference": difference}

    parts = _grid(results, [method.name for method in PAPER_METHODS], _variants(results), cell)
    return Table(
        "optimal-ratios",
        "Optimal ratios, as the paper counts them",
        "The share of states whose learned action is the first optimal one (argmax match): ours with the 95% interval "
        "of the mean over seeds, then the printed value and the difference. Standing coins.",
        *parts,
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
        seeds = " ".join(f"{value:.6g}" for value in values)
        more = {"iqm": middle[0], "iqm_low": middle[1], "iqm_high": middle[2], "by_seed": seeds}
        digits = 0 if interval[0] >= 1000 else 1
        text = f"{interval_text(interval, digits)}\nIQM {middle[0]:.{digits}f}"
        return text, _record(world, coins, method, interval, **more)

    return Table(
        f"regret-{coins}",
        f"Regret at the budget, coins {coins}",
        "The sum over all steps of V*(s) - Q*(s, x): mean over seeds with its 95% interval, and the interquartile "
        "mean. For BCQ, which does not learn online, the expected regret of following its policy. The regret of every "
        "seed is in the CSV file.",
        *_grid(results, ROWS, _variants(results, coins), cell),
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


def return_table(results: Results) -> Table:
    """The return of the learned policies, and how soon it is nearly optimal."""

    def cell(world: str, coins: str, method: str) -> tuple[str, dict[str, Any]]:
        earned = mean_interval(results.values(world, method, "final_return", coins))
        score = float(results.values(world, method, "score", coins).mean())
        until = results.values(world, method, "steps_until", coins)
        reached = until[~np.isnan(until)]
        when = f"{np.median(reached):,.0f} steps" if 2 * len(reached) > len(until) else "not reached"
        median = None if when == "not reached" else float(np.median(reached))
        more = {"score": score, "seeds_reached": len(reached), "seeds": len(until), "median_steps": median}
        when = "" if METHODS[method].learner is None else f"\n{when} ({len(reached)} of {len(until)})"
        return f"{interval_text(earned, 3)}\nscore {score:.2f}{when}", _record(world, coins, method, earned, **more)

    return Table(
        "returns",
        "Return of the learned policy",
        "The exact expected return of an episode under the policy that a learner recommends at the end; its score, 0 "
        "for acting at random and 1 for the optimal policy; and the median number of steps after which the score of "
        f"the policy in use stayed at {NEARLY_OPTIMAL} or more, with the number of seeds that got there.",
        *_grid(results, ROWS, results.variants, cell),
    )


def potential_title(name: str) -> str:
    """Return the title of a potential."""
    if name.startswith("alone-"):
        return f"joint ceilings of {name.removeprefix('alone-')} alone"
    return "joint floors" if name == "floor" else POTENTIALS[name]


def potential_table(results: Results, name: str, title: str, caption: str, alone: bool) -> Table:
    """Distance, validity and verdict of potentials, or of the ceilings of each source alone."""
    rows, records = [], []
    for world, coins in results.variants:
        names = list(dict.fromkeys(row["name"] for row in results.potentials if row["world"] == world))
        order = [*POTENTIALS, "floor"]
        for potential in sorted(names, key=lambda item: (order.index(item) if item in order else 99, item)):
            found = results.potentials_of(world, potential, coins)
            if not found or potential.startswith("alone-") != alone:
                continue
            distance = mean_interval(np.array([row["mean_distance"] for row in found]))
            correlations = [row["correlation"] for row in found if row["correlation"] is not None]
            below = {
                what: [row[what] for row in found if row[what] is not None]
                for what in ("violations", "violations_all_steps", "violations_stationary")
            }
            words = _verdict([row["informative"] for row in found], [row["verdict"] for row in found])
            rows.append(
                [
                    f"{variant_title(world, coins, results)}: {potential_title(potential)}".replace("\n", ", "),
                    interval_text(distance, 3),
                    f"{np.mean([row['largest_distance'] for row in found]):.2f}",
                    f"{np.mean(correlations):.2f}" if correlations else NOTHING,
                    *(f"{np.mean(values):.1f}" if values else NOTHING for values in below.values()),
                    words,
                ]
            )
            records.append(
                {
                    "world": world,
                    "coins": coins,
                    "potential": potential,
                    "mean_distance": distance[0],
                    "low": distance[1],
                    "high": distance[2],
                    "correlation": float(np.mean(correlations)) if correlations else None,
                    **{what: float(np.mean(values)) if values else None for what, values in below.items()},
                    "states": found[0]["states"],
                    "guaranteed": found[0]["guaranteed"],
                    "verdict": words,
                }
            )
    columns = ["", "mean distance", "largest", "correlation", "violations", "of all steps", "stationary", "verdict"]
    return Table(name, title, caption, columns, rows, records)


def _verdict(informative: Sequence[bool | None], verdicts: Sequence[str]) -> str:
    """Return the verdict of ceilings on their own usefulness, over seeds."""
    if not any(verdicts):
        return NOTHING
    helpful, doubtful = sum(item is True for item in informative), sum(item is None for item in informative)
    for count, word in ((helpful, "help"), (doubtful, "doubtful"), (len(informative) - helpful - doubtful, "no help")):
        if count == len(informative):
            return word
    return f"help {helpful}, doubtful {doubtful}, no help {len(informative) - helpful - doubtful}"


def ablation_regret(results: Results, *levels: Any) -> FloatArray | None:
    """Return the regret of a combination relative to the zero potential: float64 [seeds, worlds]; None without runs.

    Relative to the geometric mean of the zero potential's regret over the same seeds: those that all worlds have.
    """
    name = ablation_name(*levels)
    tables = [
        {what: {row["seed"]: row["regret"] for row in results.runs_of(world, what, coins)} for what in (name, BASELINE)}
        for world, coins in _variants(results)
    ]
    seeds = sorted(set.intersection(*(set(runs) for table in tables for runs in table.values()))) if tables else []
    if not seeds:
        return None
    regrets = np.array([[[table[what][seed] for table in tables] for seed in seeds] for what in (name, BASELINE)])
    logs = np.log(np.maximum(regrets, 1e-12))
    return np.asarray(np.exp(logs[0] - logs[1].mean(axis=0)))


def ablation_table(results: Results) -> Table:
    """The contribution of each part: all combinations of initial value, bonus, clip and potential."""
    rows, records = [], []
    *factors, potentials = FACTORS.values()
    for levels in itertools.product(*factors):
        cells = []
        for potential in potentials:
            found = ablation_regret(results, *levels, potential)
            if found is None:
                cells.append(NOTHING)
                continue
            logs = np.log(np.maximum(found, 1e-12))
            middle, low, high = (float(np.exp(end)) for end in bootstrap_interval(mean, logs))
            cells.append(interval_text((middle, low, high), 2))
            combination = dict(zip(FACTORS, (*levels, potential), strict=True))
            records.append({**combination, "relative_regret": middle, "low": low, "high": high})
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


def overall_table(results: Results) -> Table:
    """Every method over all worlds."""
    rows, records = [], []
    for coins in COINS:
        variants = _variants(results, coins)
        for method in ROWS:
            columns = []
            for world, _ in variants:
                values = results.values(world, method, "regret", coins)
                zero = results.values(world, BASELINE, "regret", coins)
                if len(values) and len(zero):
                    columns.append(values / zero.mean())
            if not columns or len(columns) < len(variants) or len({len(column) for column in columns}) > 1:
                continue
            table = np.stack(columns, axis=1)
            middle, average = bootstrap_interval(interquartile_mean, table), bootstrap_interval(mean, table)
            title = f"{METHODS[method].title}, coins {coins}"
            rows.append([title, interval_text(middle, 2), interval_text(average, 2)])
            records.append(
                {
                    "method": method,
                    "coins": coins,
                    "iqm": middle[0],
                    "iqm_low": middle[1],
                    "iqm_high": middle[2],
                    "mean": average[0],
                    "mean_low": average[1],
                    "mean_high": average[2],
                }
            )
    return Table(
        "overall",
        "All worlds together",
        "Regret as a share of the zero potential's mean in the same world: interquartile mean and mean over seeds and "
        "worlds, with 95% stratified bootstrap intervals. Methods that do not exist in every world are left out.",
        ["", "interquartile mean", "mean"],
        rows,
        records,
    )


def gamma_table(results: Results) -> Table:
    """What assuming a finite confounding of all sources would gain, and whether it is true."""
    worlds = [world for world, _ in _variants(results) if world in WORLDS]
    steps = LOG_STEPS // (QUICK.divisor if results.settings["quick"] else 1)
    columns, records = [], []
    for name in worlds:
        materials = Materials(load_world(name), steps, seed=0)
        cells = []
        for gamma in GAMMAS:
            found = materials.bounded(gamma)
            record = {"world": name, "gamma": gamma, "contradiction": found is None}
            if found is None:
                cells.append("contradiction")
            else:
                facts = bound_facts(materials, found)
                cells.append(f"{facts['mean_distance']:.3f}\n{facts['violations']} violations")
                record |= {key: facts[key] for key in ("mean_distance", "violations", "states")}
            records.append(record)
        columns.append(cells)
    rows = [[f"Gamma {gamma:g}", *cells] for gamma, *cells in zip(GAMMAS, *columns, strict=True)]
    return Table(
        "confounding",
        "What a finite confounding would gain, and whether it is true",
        "Joint ceilings under the assumption that no source is more confounded than Gamma: the mean distance to V* and "
        "the number of states where they lie below it, unless the sources contradict the assumption. The demonstrators "
        "react to the wind almost deterministically, so that only a large Gamma is true. Logs of seed 0, standing "
        "coins.",
        ["", *worlds],
        rows if worlds else [],
        records,
    )


def all_tables(results: Results, *, progress: Progress = no_progress) -> dict[str, Table]:
    """Return every table for which there are results, by name.

    Args:
        results: what was run.
        progress: called before each table, and before each world whose theory is examined.
    """
    ran = {world for world, _ in results.variants}
    examined_worlds = [ROBOT, *(world for world in WORLDS if world in ran)]
    makers: list[tuple[str, Callable[[], list[Table]]]] = [
        *((f"Examining the theory of {world}", partial(_examine, world)) for world in examined_worlds),
        ("Tables of regret and returns", partial(_run_tables, results)),
        ("The table of confounding", lambda: [gamma_table(results)]),
        ("Tables of potentials", partial(_potential_tables, results)),
        ("Tables of the walking robot", robot_tables),
        ("Tables of the theory", lambda: theory_tables(examined_worlds)),
    ]
    tables: list[Table] = []
    for done, (what, make) in enumerate(makers):
        progress(done, len(makers), what)
        tables += make()
    return {table.name: table for table in tables if table.rows}


def _examine(world: str) -> list[Table]:
    """Examine the theory of a world, which is then remembered; it has no table of its own."""
    examined(world)
    return []


def _run_tables(results: Results) -> list[Table]:
    return [
        printed_table(results),
        optimal_table(results),
        regret_table(results, "standing"),
        regret_table(results, "once"),
        relative_table(results),
        overall_table(results),
        return_table(results),
        ablation_table(results),
    ]


def _potential_tables(results: Results) -> list[Table]:
    return [
        potential_table(
            results,
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
            alone=False,
        ),
        potential_table(
            results,
            "sources",
            "What each source alone proves",
            "The joint ceiling of one source, with observed support.",
            alone=True,
        ),
    ]
