"""Draw the figures of the documentation: `make tables` runs this after the tables.

- `overview`: the hidden wind, what the logs show, and what that saves; the figure of the README.
- `masses`: what each source proves about one action, and what remains free.
- `data`: how far ceilings are from the truth, by the length of the logs.
- `diagram`: what confounds what.
- `flow`: what is handed from package to package.
- `imports`: which package imports which, read off the source.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import causal_shaping as cs
from causal_shaping.demo.agents import train_agents
from causal_shaping.demo.page import draw_field, draw_regret, draw_shares
from causal_shaping.demo.rover import (
    HORIZON,
    OPERATORS,
    open_files,
    rover_world,
    share_for_agent,
    shares_in_logs,
    write_logs,
)
from causal_shaping.io.files import replacing
from studies.docs.imports import DELEGATING, STAGES, stage_counts
from studies.paper.diagram import draw_diagram

FOLDER = Path(__file__).parents[2] / "docs" / "figures"
WORLD, SEEDS = "lavacross-easy", 10
LOG_STEPS = 100_000
COLOURS = {"good": "#1f77b4", "bad": "#e8a33d", "random": "#2ca02c", "free": "#d9d9d9"}
LENGTHS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
REWARD_MAX = -0.1


def counts_of(world, steps=LOG_STEPS, seed=0):
    return cs.count([world.collect(name, steps, seed) for name in world.demonstrators])


def overview():
    """Three panels, which the demo has on its page: the hidden wind, what the logs show, and regret."""
    world = rover_world()
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.csv" for name in OPERATORS}
        write_logs(world, paths, seed=1)
        counts = cs.count(open_files(paths))
    trained = train_agents(world, cs.posterior(counts, HORIZON, REWARD_MAX), seed=1)
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    field, shares, regret = figure.subplots(1, 3, width_ratios=[1, 1.2, 1.35])
    draw_field(field, world)
    draw_shares(shares, *shares_in_logs(counts), share_for_agent(world))
    draw_regret(regret, trained)
    return figure


def masses(place=(3, 1), action="right"):
    """What three sources prove about one action in one state of lavacross-easy, outcome by outcome."""
    world = cs.load_world(WORLD)
    state, chosen = world.space.states.index(place), world.actions.index(action)
    model = world.model
    labels = [f"to {world.states[s]}" for s in sorted(set(model.next_state[state, chosen].tolist()))]
    outcomes = sorted(set(model.next_state[state, chosen].tolist()))
    shown = {}
    for name, beta in world.demonstrators.items():
        mass = model.noise[state] * beta[state, :, chosen]
        shown[name] = [mass[model.next_state[state, chosen] == s].sum() for s in outcomes]
    truth = [model.noise[state][model.next_state[state, chosen] == s].sum() for s in outcomes]
    likely = [i for i, mass in enumerate(truth) if mass > 0]
    proven = np.max(list(shown.values()), axis=0)
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    rows = [*shown, "together", "the truth"]
    for row, name in enumerate(rows):
        values = shown.get(name, proven if name == "together" else truth)
        left = 0.0
        for colour, i in zip(("#7fb8e6", "#93d38f"), likely, strict=False):
            axes.barh(row, values[i], left=left, color=colour, edgecolor="white")
            if values[i] > 0.05:
                axes.text(
                    left + values[i] / 2, row, f"{labels[i]}\n{values[i]:.2f}", ha="center", va="center", fontsize=8
                )
            left += values[i]
        axes.barh(row, 1 - left, left=left, color=COLOURS["free"], edgecolor="white")
        if 1 - left > 0.05:
            axes.text(left + (1 - left) / 2, row, f"free {1 - left:.2f}", ha="center", va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel=f"mass of what do({action}) in {place} leads to, proven by each source")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def data():
    """How far ceilings are from V*, and how often plug-in ones are below it somewhere, by the length of the logs."""
    world = cs.load_world(WORLD)
    best, alive = world.model.optimum(world.horizon).values, ~world.model.terminal
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.add_subplot()
    for label, options, colour, shift in (
        ("plug-in", {}, "#e8a33d", -14),
        ("confidence 0.95", {"confidence": 0.95}, "#1f77b4", 7),
    ):
        middle, below = [], []
        for steps in LENGTHS:
            found = []
            for seed in range(SEEDS):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", cs.AssumptionWarning)
                    values = cs.value_ceilings(
                        counts_of(world, steps, seed), world.horizon, REWARD_MAX, **options
                    ).values
                found.append((values - best)[:, alive])
            middle.append(np.mean([gap.mean() for gap in found]))
            below.append(sum(gap.min() < -1e-9 for gap in found))
        axes.plot(LENGTHS, middle, "o-", color=colour, label=label)
        for steps, height, broken in zip(LENGTHS, middle, below, strict=True):
            axes.annotate(
                f"{broken} of {SEEDS}", (steps, height), textcoords="offset points", xytext=(0, shift), fontsize=8
            )
    axes.axhline(-best[:, alive].mean(), color="#000000", linewidth=0.8, linestyle="--", label="zero, without logs")
    axes.set(
        xscale="log", yscale="log", xlabel="steps logged of each of three demonstrators", ylabel="mean distance to V*"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0.007)
    axes.legend(frameon=False, fontsize=8)
    return figure


def flow():
    """The flow of the package: what is handed on, and which package does each step."""
    stages = {
        "logs": "your Parquet, CSV,\nframes, Minari, Spark;\nor worlds/ collect",
        "counts": "logs/\ncount",
        "ceilings": "bounds/\nvalue_ceilings",
        "potential": "data/\nceilings.potential()",
        "reward": "shaping/\nShapeReward",
        "policy": "learners/ train,\nor any agent",
        "report": "studies/\nreproduce",
    }
    figure = Figure(figsize=(11, 2.2), layout="constrained")
    axes = figure.add_subplot()
    for i, (name, module) in enumerate(stages.items()):
        box = {"boxstyle": "round,pad=0.5", "facecolor": "#e8f1fa", "edgecolor": "#1f77b4"}
        axes.text(i, 0.5, name, ha="center", va="center", fontsize=11, bbox=box)
        axes.text(i, -0.05, module, ha="center", va="top", fontsize=8, color="#57606a")
        if i:
            arrow = {"arrowstyle": "-|>", "color": "#57606a", "shrinkA": 34, "shrinkB": 34}
            axes.annotate("", (i, 0.5), (i - 1, 0.5), arrowprops=arrow)
    axes.set(xlim=(-0.5, len(stages) - 0.5), ylim=(-0.6, 1))
    axes.axis("off")
    return figure


def imports():
    """Which package (row) imports which (column), and how often: all below the diagonal, but for named methods."""
    counted, size = stage_counts(), len(STAGES)
    place = {stage: i for i, stage in enumerate(STAGES)}
    table = np.zeros((size, size))
    for (user, used), number in counted.items():
        table[place[user], place[used]] = number
    figure = Figure(figsize=(7.6, 6.8), layout="constrained")
    axes = figure.add_subplot()
    shade = np.where(np.tri(size, k=-1) > 0, np.sqrt(table), np.nan)
    axes.imshow(shade, cmap="Blues", vmin=0, vmax=1.6 * np.sqrt(table.max()))
    for (user, used), number in counted.items():
        late = place[user] < place[used]
        style = {"color": "#d1495b", "weight": "bold"} if late else {"color": "#24292f"}
        axes.text(place[used], place[user], f"{number}", ha="center", va="center", fontsize=8, **style)
    axes.plot([-0.5, size - 0.5], [-0.5, size - 0.5], color="#8c959f", linewidth=0.8)
    axes.set_xticks(range(size), STAGES, rotation=60, ha="left", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(size), STAGES, fontsize=9)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    note = f"Red: {len(DELEGATING)} methods that hand over to the right, because people look for them there."
    axes.set_xlabel(f"The package of a row imports from that of a column so many times.\n{note}", fontsize=9)
    return figure


FIGURES = {
    "overview": (overview, ".png"),
    "masses": (masses, ".svg"),
    "data": (data, ".svg"),
    "diagram": (draw_diagram, ".svg"),
    "flow": (flow, ".svg"),
    "imports": (imports, ".svg"),
}


def main(names):
    FOLDER.mkdir(exist_ok=True)
    for name, (draw, ending) in FIGURES.items():
        if names and name not in names:
            continue
        print(f"figures/{name}{ending}")
        figure = draw()
        with (
            matplotlib.rc_context({"svg.hashsalt": name}),
            replacing(FOLDER / f"{name}{ending}", [ending]) as temporary,
        ):
            figure.savefig(temporary, dpi=110, facecolor="white", metadata={"Date": None} if ending == ".svg" else {})


if __name__ == "__main__":
    main(sys.argv[1:])
