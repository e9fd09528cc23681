"""The report: one HTML file without network, with the figures and tables beside it as files of their own.

- `write_report`: write `index.html`, `figures/` and `tables/` into the folder of the results.
- `findings`: what was found, in plain words, computed from the results.
"""

from __future__ import annotations

import base64
import math
import platform
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import joblib
from markdown_it import MarkdownIt

from causal_shaping import __version__
from causal_shaping.io.files import replacing
from causal_shaping.paper.study.figures import Drawing, all_figures, save_figure, shown_policies, shown_values
from causal_shaping.paper.study.maps import arrow_angle, map_panel, policy_panels, value_panels
from causal_shaping.paper.study.plan import (
    BASELINE,
    LOG_STEPS,
    METHODS,
    MIN_VISITS,
    PRINTED,
    QUICK,
    RECOMMENDED,
    SEEDS,
    WORLDS,
    is_deep,
)
from causal_shaping.paper.study.run import Results
from causal_shaping.paper.study.tables import AIM, Table, all_tables, relative_regret
from causal_shaping.worlds import World, load_world
from causal_shaping.worlds.world import COINS

ENOUGH = 0.95
"""The share of states in which a configuration shall find an optimal action."""

NEAR_PRINT = 0.10
LIBRARIES = ("numpy", "numba", "scipy", "pyarrow", "duckdb", "joblib", "matplotlib", "torch")


def write_report(
    results: Results,
    worlds: Mapping[str, World] | None = None,
    workers: int | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Path:
    """Write the report of results into their folder and return the path of its page.

    Args:
        results: what was run.
        worlds: the worlds by name; by default those that the results name.
        workers: how many processes draw figures; by default one per core.
        progress: called with the number of figures drawn, of all, and the name of the last one.
    """
    worlds = {name: load_world(name) for name, _ in results.variants} if worlds is None else worlds
    tables, drawings = all_tables(results), all_figures(results, worlds)
    for name in ("tables", "figures"):
        (results.folder / name).mkdir(exist_ok=True)
    for table in tables.values():
        _write(results.folder / "tables" / f"{table.name}.csv", table.to_csv())
        _write(results.folder / "tables" / f"{table.name}.tex", table.to_latex())
    count = joblib.cpu_count() if workers is None else workers
    pool = joblib.Parallel(n_jobs=count, return_as="generator_unordered")
    for done, name in enumerate(pool(joblib.delayed(_draw)(one, results.folder) for one in drawings), 1):
        progress(done, len(drawings), name)
    page = results.folder / "index.html"
    _write(page, render(results, worlds, tables, drawings))
    return page


def _draw(drawing: Drawing, folder: Path) -> str:
    save_figure(drawing, folder / "figures")
    return drawing.name


def _write(path: Path, text: str) -> None:
    with replacing(path, [path.suffix]) as temporary:
        temporary.write_text(text, encoding="utf-8")


def render(results: Results, worlds: Mapping[str, World], tables: Mapping[str, Table], drawings: list[Drawing]) -> str:
    """Return the page; figures are taken from the files of the folder."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("causal_shaping.paper.study", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["angle"] = arrow_angle
    figures = {
        drawing.name: {
            "name": drawing.name,
            "caption": drawing.caption,
            "only": drawing.only,
            "source": _embedded(results.folder / "figures" / f"{drawing.name}.svg"),
        }
        for drawing in drawings
    }
    maps = [
        {
            "name": name,
            "title": world.title,
            "panels": [map_panel(world)],
            "values": value_panels(world, shown_values(results, world)),
            "sources": value_panels(world, shown_values(results, world, alone=True))[1:],
            "policies": policy_panels(world, shown_policies(results, world)),
        }
        for name, world in worlds.items()
    ]
    regrets = [figures[key] for key in figures if key.startswith("regret-")]
    return environment.get_template("report.html").render(
        findings=list(findings(results)),
        tables=tables,
        figures=figures,
        regrets=regrets,
        maps=maps,
        differences=_differences(),
        facts=_facts(results),
        quick=results.settings["quick"],
        explained=not results.settings["quick"] and set(WORLDS) <= set(_worlds(results)),
        command=_command(results),
    )


def _embedded(path: Path) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _differences() -> str | None:
    """Return the page of differences as HTML, None where it is not installed; markup in it stays text."""
    places = [files("causal_shaping.paper.study") / "differences.md"]
    places.append(Path(__file__).parents[3] / "docs" / "differences.md")  # in a checkout
    for place in places:
        if place.is_file():
            markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
            return str(markdown.render(_page(place.read_text("utf-8"))))
    return None


def _page(text: str) -> str:
    """Return a page as a section: without its title and marks, headings one lower, links that stay in the report."""
    kept = (f"#{line}" if line.startswith("## ") else line for line in text.splitlines()[1:] if line[:4] != "<!--")
    return (
        "\n".join(kept)
        .replace("](ceilings.md)", "](#potentials)")
        .replace("](learners.md)", "](#regret)")
        .replace("](theory.md)", "](#theory)")
    )


def _command(results: Results) -> str:
    """Return the command that runs all of this again."""
    options = ["--quick"] if results.settings["quick"] else []
    if results.settings["counted_in"] != "steps":
        options.append(f"--counted-in {results.settings['counted_in']}")
    seeds = 1 + max(row["seed"] for row in results.runs)
    if seeds != (QUICK.seeds if results.settings["quick"] else SEEDS):
        options.append(f"--seeds {seeds}")
    if not any(is_deep(METHODS[row["name"]]) for row in results.runs):
        options.append("--no-bcq")
    return " ".join(["causal-shaping reproduce", *options])


def _facts(results: Results) -> dict[str, Any]:
    seeds = sorted({row["seed"] for row in results.runs})
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except ModuleNotFoundError:
            continue
    return {
        "version": __version__,
        "python": platform.python_version(),
        "libraries": found,
        "seeds": f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "".join(map(str, seeds)),
        "runs": len(results.runs),
        "potentials": len(results.potentials),
        "steps": sum(row["steps"] for row in results.runs),
        "log_steps": LOG_STEPS,
        "counted_in": results.settings["counted_in"],
    }


def findings(results: Results) -> Iterator[tuple[str, str]]:
    """Yield what was found: a heading and a paragraph each; only what the results have numbers for."""
    for find in (_reproduced, _zero_is_enough, _earns, _optimal, _misled, _violated):
        found = find(results)
        if found is not None:
            yield found


def _worlds(results: Results) -> list[str]:
    return [world for world, coins in results.variants if coins == "standing"]


def _regrets(results: Results, method: str, coins: str = "standing") -> dict[str, float]:
    names = [world for world, rule in results.variants if rule == coins]
    return {
        world: float(results.values(world, method, "regret", coins).mean())
        for world in names
        if results.runs_of(world, method, coins)
    }


def _reproduced(results: Results) -> tuple[str, str] | None:
    cells = [
        (method, world, float(results.values(world, method, "argmax_match").mean()) - printed)
        for method, row in PRINTED.items()
        for world, printed in row.items()
        if results.runs_of(world, method)
    ]
    own = [difference for method, _, difference in cells if method == "causal-bound"]
    if not own:
        return None
    near = sum(abs(difference) <= NEAR_PRINT for *_, difference in cells)
    far = [f"{METHODS[m].title} in {w} ({d:+.2f})" for m, w, d in cells if abs(d) > NEAR_PRINT]
    text = (
        f"Of {len(cells)} cells of the paper's table of optimal ratios {near} come out within {NEAR_PRINT:.2f}. Its "
        f"own method differs by {min(own):+.2f} to {max(own):+.2f}. "
    )
    text += f"Further away: {'; '.join(far)}; the differences page has the experiments." if far else ""
    met = min(own) >= -NEAR_PRINT
    return ("The paper's table comes out" if met else "The paper's table does not come out here"), text.strip()


def _zero_is_enough(results: Results) -> tuple[str, str] | None:
    zero, bound, vanilla = (_regrets(results, name) for name in (BASELINE, "causal-bound", "no-shaping"))
    shared = [world for world in zero if world in bound and world in vanilla]
    if not shared:
        return None
    gains = ", ".join(f"{world} {zero[world]:.0f} against {bound[world]:.0f}" for world in shared)
    lost = math.floor(min(vanilla[world] / max(zero[world], bound[world]) for world in shared))
    if lost < 2:
        return None
    return (
        "Most of the published gain needs no logs",
        f"The same learner with a potential of zero, which looks at no data at all, has a regret of {gains} with the "
        f"published bound. Both are at least {lost} times better than Q-UCB: what helps is a table that starts at "
        "zero and a bonus that is gone with it, not the bound, which is nearly flat.",
    )


def _earns(results: Results) -> tuple[str, str] | None:
    lines = []
    for method in ("tight", "ucbvi", "causal", "causal-capped", "causal-capped-trial"):
        parts = []
        for coins in COINS:
            names = [world for world, rule in results.variants if rule == coins]
            both = [w for w in names if results.runs_of(w, method, coins) and results.runs_of(w, BASELINE, coins)]
            if both:
                shares = [relative_regret(results, world, coins, method, BASELINE)[0] for world in both]
                met = sum(share <= AIM for share in shares)
                parts.append(f"{min(shares):.2f} to {max(shares):.2f} with coins {coins} ({met} of {len(both)} worlds)")
        if parts:
            lines.append(f"{METHODS[method].title}: {', '.join(parts)}.")
    if not lines:
        return None
    head = f"Regret as a share of the zero potential's, and in how many worlds that is at most {AIM}."
    return "Where ceilings from confounded logs earn their keep", " ".join([head, *lines])


def _optimal(results: Results) -> tuple[str, str] | None:
    names = _worlds(results)
    if not names or not all(results.runs_of(world, RECOMMENDED) for world in names):
        return None
    shares = {world: float(results.values(world, RECOMMENDED, "optimal").mean()) for world in names}
    text = ", ".join(f"{world} {share:.3f}" for world, share in shares.items())
    verdict = "in all of them" if min(shares.values()) >= ENOUGH else "not in all of them"
    return (
        "One configuration for all worlds" if set(WORLDS) <= set(names) else "One configuration",
        f"{METHODS[RECOMMENDED].title}, its constants frozen on tuning seeds, finds a truly optimal action in this "
        f"share of the states: {text}. The aim of {ENOUGH:.0%} is met {verdict}.",
    )


def _misled(results: Results) -> tuple[str, str] | None:
    zero, values = _regrets(results, BASELINE), _regrets(results, "avg")
    worse = {world: values[world] / zero[world] for world in zero if world in values and values[world] > zero[world]}
    if not worse:
        return None
    text = ", ".join(f"{world} {share:.0f}" for world, share in worse.items())
    return (
        "What demonstrators earned misleads",
        f"Shaping with their average return multiplies the regret of a zero potential in {len(worse)} of {len(zero)} "
        f"worlds: by {text}. They saw the wind; the agent does not.",
    )


def _violated(results: Results) -> tuple[str, str] | None:
    sentences = []
    for name, words in (
        ("paper", "The published bound"),
        ("joint", "The plug-in joint ceiling"),
        ("joint-sure", f"With confidence and at least {MIN_VISITS} visits for its support, it"),
    ):
        rows = [row for row in results.potentials if row["name"] == name]
        if rows:
            broken = sum(row["violations_all_steps"] > 0 for row in rows)
            sentences.append(
                f"{words} lies below the optimal value of some state and step in {broken} of {len(rows)} sets of logs."
            )
    return ("Which bounds hold", " ".join(sentences)) if sentences else None
