"""Whether predicted worth is what logs save in the true world: in worlds of all kinds, none of which anybody chose by.

Predicted from the logs alone, in a few drawn worlds; realised by runs in the true world. Both are the share of the
regret that is saved, from -1 to 1, and the episodes saved as a share of the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HARD, FIRST_WORLD = 8, 20_000
STEPS, SEEDS, DRAWN = 10_000, range(900, 903), range(16)
LOG_STEPS, LOG_SEED = 20_000, 310
GRIDS = ("windy-empty", "lavacross-easy", "lavacross-hard", "lavacross-maze", "lavacross-maze-fewer-coins")
FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "worth.svg"
LEAST_CORRELATION = 0.3
KINDS = (
    "random",
    "erratic",
    "hostile",
    "partly hostile",
    "slander",
    "slander, second unconfounded",
)


def worth_parts() -> list[str]:
    """Return the kinds of hard worlds, grid worlds, and problems of exploration."""
    return [*KINDS, *(f"grid; {name}" for name in GRIDS), "exploration"]


def run_worth(part: str) -> dict[str, Any]:
    """Return what was predicted and what was saved, for each world of a part."""
    import causal_shaping as cs
    from studies.worlds import hard as hard_worlds

    if part.startswith("grid"):
        world = cs.load_world(part.split("; ")[1])
        names = list(world.demonstrators)
        chosen = [names, *([name] for name in names)]
        cases = [(f"{world.name}, {' and '.join(some)}", world, some) for some in chosen]
    elif part == "exploration":
        from studies.worlds.exploration import exploration_worlds

        cases = [(f"{w.name}, {name}", w, [name]) for w in exploration_worlds() for name in w.demonstrators]
    else:
        made = [hard_worlds.KINDS[part](FIRST_WORLD + i) for i in range(HARD)]
        cases = [(f"{part} {i}", world, list(world.demonstrators)) for i, world in enumerate(made)]
    return {"worlds": {name: compare(world, some) for name, world, some in cases}}


def compare(world: Any, sources: list[str]) -> dict[str, float]:
    """Return the share of regret and of episodes that logs save: predicted from logs, and in the true world."""
    import causal_shaping as cs
    from causal_shaping.learners.worth import head_start, saved_share

    counts = cs.count(
        [world.collect(name, LOG_STEPS, LOG_SEED) for name in sources], states=world.states, actions=world.actions
    )
    belief = cs.posterior(counts, horizon=world.horizon, reward_max=world.model.reward_range[1])
    found = belief.worth(steps=STEPS, seeds=DRAWN)
    runs = [
        [
            cs.train(world, logs, learner="posterior", steps=STEPS, seed=seed, step_indexed=True, reward_max=most)
            for seed in SEEDS
        ]
        for logs, most in ((None, belief.settings.reward_bound), (belief, None))
    ]
    without, with_logs = (np.array([run.step_regret for run in some]) for some in runs)
    ahead = np.mean([head_start(a, b) for a, b in zip(without, with_logs, strict=True)])
    return {
        "predicted": found.share,
        "low": found.share_interval[0],
        "high": found.share_interval[1],
        "predicted episodes": found.episodes_saved / found.episodes,
        "chance of help": found.chance_of_help,
        "realised": saved_share(float(without[:, -1].sum()), float(with_logs[:, -1].sum())),
        "realised episodes": float(ahead) / STEPS,
    }


def scores(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the correlation of what was predicted with what was saved, and how often the sign and interval hold."""
    worlds = [world for figures in parts.values() for world in figures["worlds"].values()]
    said, true = (np.array([world[name] for world in worlds]) for name in ("predicted", "realised"))
    episodes = np.array([[world["predicted episodes"], world["realised episodes"]] for world in worlds]).T
    inside = [world["low"] <= world["realised"] <= world["high"] for world in worlds]
    return {
        "worlds": len(worlds),
        "correlation": float(np.corrcoef(said, true)[0, 1]),
        "correlation of episodes": float(np.corrcoef(episodes)[0, 1]),
        "sign right": float((np.sign(said) == np.sign(true)).mean()),
        "truly helped": float((true > 0).mean()),
        "inside the interval": float(np.mean(inside)),
        "mean predicted": float(said.mean()),
        "mean realised": float(true.mean()),
    }


def holds(parts: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether prediction and saving go together, in at least 60 worlds. Draws the figure of the documentation."""
    found = scores(parts)
    for name, number in found.items():
        print(f"  {name}: {number:.3g}")
    draw(parts)
    return found["worlds"] >= 60 and found["correlation"] > LEAST_CORRELATION


def draw(parts: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw what was saved over what was predicted, with the intervals."""
    from matplotlib.figure import Figure

    from causal_shaping.plot import save_picture

    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    axes = figure.add_subplot()
    kinds: dict[str, list[Any]] = {}
    for part, figures in parts.items():
        kinds.setdefault(part.split("; ")[0], []).extend(figures["worlds"].values())
    for kind, worlds in kinds.items():
        said, true, low, high = (
            100 * np.array([world[name] for world in worlds]) for name in ("predicted", "realised", "low", "high")
        )
        (dots,) = axes.plot(said, true, linestyle="none", marker="o", markersize=4, label=kind)
        axes.hlines(true, low, high, color=dots.get_color(), alpha=0.25, linewidth=1)
    axes.plot([-100, 100], [-100, 100], color="#8b949e", linewidth=0.8)
    axes.axhline(0.0, color="#1f2328", linewidth=0.6)
    axes.axvline(0.0, color="#1f2328", linewidth=0.6)
    axes.set(xlim=(-100, 100), ylim=(-100, 100))
    axes.set(xlabel="regret saved, predicted from logs (%; 90% of drawn worlds)", ylabel="saved in the true world (%)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    save_picture(figure, FIGURE)
