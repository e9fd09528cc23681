"""Draw the figures of the documentation: `make tables` runs this after the tables.

- `overview`: logs in, potential out, regret down; the figure of the README.
- `masses`: what each source proves of one action, and what is left.
- `data`: how far ceilings are from the truth, by the length of the logs.
- `diagram`: what confounds what.
- `flow`: what is handed from module to module.
"""

import warnings
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import causal_shaping as cs
from causal_shaping.io.files import replacing
from causal_shaping.learners.seeds import curve_points
from causal_shaping.paper.diagram import draw_diagram
from causal_shaping.plot.regret import draw_curve
from causal_shaping.plot.worlds import draw_world

FOLDER = Path(__file__).parent / "figures"
WORLD, BUDGET, SEEDS = "lavacross-easy", 20_000, 10
LOG_STEPS = 100_000
COLOURS = {"good": "#1f77b4", "bad": "#e8a33d", "random": "#2ca02c", "free": "#d9d9d9"}
LENGTHS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
REWARD_MAX = -0.1


def counts_of(world, steps=LOG_STEPS, seed=0):
    return cs.count([world.collect(name, steps, seed) for name in world.demonstrators])


def overview():
    """Three panels: the map with its hidden wind, the ceiling, and regret with and without the logs."""
    world = cs.load_world(WORLD)
    counts = counts_of(world)
    ceilings = cs.value_ceilings(counts, world.horizon, REWARD_MAX)
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    logs, potential, regret = figure.subplots(1, 3, width_ratios=[1, 1, 1.45])
    draw_world(world, title="Logs in: others acted, and saw the wind", axes=logs)
    draw_world(world, values=ceilings.values[0], winds=False, title="Potential out: a ceiling of V*", axes=potential)
    compared = {
        "Q-UCB, no logs": (None, "q-ucb", {}, "#7f7f7f"),
        "shaped by zero, no logs": (cs.Potential.zero(world), "q-ucb-shaping", {}, "#000000"),
        "shaped by the ceiling": (ceilings, "q-ucb-shaping-tight", {}, "#1f77b4"),
        "planned with the logs": (ceilings, "ucbvi-causal", {"counts": counts}, "#9467bd"),
    }
    points = curve_points(BUDGET)
    for label, (phi, learner, options, colour) in compared.items():
        runs = [cs.train(world, phi, learner=learner, steps=BUDGET, seed=seed, **options) for seed in range(SEEDS)]
        curves = np.array([run.step_regret[points - 1] for run in runs])
        draw_curve(regret, points, curves, label, color=colour, linewidth=1.6)
    regret.set(yscale="log", xscale="log", xlabel="environment steps", ylabel="regret", title="Regret down")
    regret.set_xlim(100, BUDGET)
    regret.spines[["top", "right"]].set_visible(False)
    regret.legend(frameon=False, fontsize=9)
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
    """The flow of the package: what is handed on, and which module does each step."""
    stages = {
        "logs": "your Parquet, CSV,\nMinari, Spark;\nor collect",
        "counts": "logs/\ncount",
        "ceilings": "bounds/\nvalue_ceilings",
        "potential": "potential.py",
        "reward": "shaping.py\nShapeReward",
        "policy": "learners/\nor any agent",
        "report": "study/",
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


FIGURES = {
    "overview": (overview, ".png"),
    "masses": (masses, ".svg"),
    "data": (data, ".svg"),
    "diagram": (draw_diagram, ".svg"),
    "flow": (flow, ".svg"),
}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, (draw, ending) in FIGURES.items():
        print(f"figures/{name}{ending}")
        figure = draw()
        with (
            matplotlib.rc_context({"svg.hashsalt": name}),
            replacing(FOLDER / f"{name}{ending}", [ending]) as temporary,
        ):
            figure.savefig(temporary, dpi=110, facecolor="white", metadata={"Date": None} if ending == ".svg" else {})


if __name__ == "__main__":
    main()
