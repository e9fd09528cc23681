"""Draw the figures of the documentation: `make tables` runs this after the tables.

- `overview`: the hidden wind, what the logs show, and what that saves; the figure of the README.
- `masses`: what each source proves about one action, and what remains free.
- `data`: how far ceilings are from the truth, by the length of the logs.
- `diagram`: what confounds what.
"""

import tempfile
import warnings
from pathlib import Path

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
from causal_shaping.plot import write_figure
from studies.paper.diagram import draw_diagram

FOLDER = Path(__file__).parents[2] / "docs" / "figures"
WORLD, SEEDS = "lavacross-easy", 10
LENGTHS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
REWARD_MAX = -0.1


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
    noise, next_state = world.model.noise[state], world.model.next_state[state, chosen]
    outcomes = [s for s in np.unique(next_state) if noise[next_state == s].sum() > 0]

    def shares(mass):
        return np.array([mass[next_state == s].sum() for s in outcomes])

    rows = {name: shares(noise * beta[state, :, chosen]) for name, beta in world.demonstrators.items()}
    rows |= {"together": np.max(list(rows.values()), axis=0), "the truth": shares(noise)}
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    titles = [*(f"to {world.states[s]}\n" for s in outcomes), "free "]
    for row, proven in enumerate(rows.values()):
        left = 0.0
        for mass, title, colour in zip(
            [*proven, 1 - proven.sum()], titles, ("#7fb8e6", "#93d38f", "#d9d9d9"), strict=True
        ):
            axes.barh(row, mass, left=left, color=colour, edgecolor="white")
            if mass > 0.05:
                axes.text(left + mass / 2, row, f"{title}{mass:.2f}", ha="center", va="center", fontsize=8)
            left += mass
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

    def gaps(steps, seed, confidence):
        counts = cs.count([world.collect(name, steps, seed) for name in world.demonstrators])
        with warnings.catch_warnings(action="ignore", category=cs.AssumptionWarning):
            return (cs.value_ceilings(counts, world.horizon, REWARD_MAX, confidence=confidence).values - best)[:, alive]

    for label, confidence, colour, shift in (
        ("plug-in", None, "#e8a33d", -14),
        ("confidence 0.95", 0.95, "#1f77b4", 7),
    ):
        found = [[gaps(steps, seed, confidence) for seed in range(SEEDS)] for steps in LENGTHS]
        middle = [np.mean(some) for some in found]
        axes.plot(LENGTHS, middle, "o-", color=colour, label=label)
        for place, some in zip(zip(LENGTHS, middle, strict=True), found, strict=True):
            broken = sum(gap.min() < -1e-9 for gap in some)
            axes.annotate(f"{broken} of {SEEDS}", place, textcoords="offset points", xytext=(0, shift), fontsize=8)
    axes.axhline(-best[:, alive].mean(), color="#000000", linewidth=0.8, linestyle="--", label="zero, without logs")
    axes.set(
        xscale="log", yscale="log", xlabel="steps logged of each of three demonstrators", ylabel="mean distance to V*"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=0.007)
    axes.legend(frameon=False, fontsize=8)
    return figure


FIGURES = {
    "overview.png": overview,
    "masses.svg": masses,
    "data.svg": data,
    "diagram.svg": draw_diagram,
}


def main():
    for name, draw in FIGURES.items():
        print(f"figures/{name}")
        write_figure(draw(), FOLDER / name, salt=Path(name).stem, dpi=110)


if __name__ == "__main__":
    main()
