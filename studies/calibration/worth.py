"""Whether predicted worth is what logs save in the true world: in worlds of all kinds, none of which anybody chose by.

Predicted from the logs alone, in a few drawn worlds; realised by runs in the true world. Both are the share of the
regret that is saved, from -1 to 1, and the episodes saved as a share of the budget.
"""

import numpy as np
from matplotlib.figure import Figure

import causal_shaping as cs
from causal_shaping.learners.worth import head_start, saved_share
from causal_shaping.plot import save_picture
from studies import ROOT
from studies.calibration.learner import LIMITS
from studies.worlds import exploration, hard

HARD, FIRST_WORLD = 8, 20_000
STEPS, SEEDS, DRAWN = 10_000, range(900, 903), range(16)
LOG_STEPS, LOG_SEED = 20_000, 310
GRIDS = ("windy-empty", "lavacross-easy", "lavacross-hard", "lavacross-maze", "lavacross-maze-fewer-coins")
FIGURE = ROOT / "docs" / "figures" / "worth.svg"
LEAST_CORRELATION = 0.3
PARTS = [*LIMITS, *(f"grid; {name}" for name in GRIDS), "exploration"]
"""The kinds of hard worlds, grid worlds, and problems of exploration."""


def run_part(part):
    """Return what was predicted and what was saved, for each world of a part."""
    if part.startswith("grid"):
        world = cs.load_world(part.split("; ")[1])
        names = list(world.demonstrators)
        chosen = [names, *([name] for name in names)]
        cases = [(f"{world.name}, {' and '.join(some)}", world, some) for some in chosen]
    elif part == "exploration":
        worlds = exploration.exploration_worlds()
        cases = [(f"{world.name}, {name}", world, [name]) for world in worlds for name in world.demonstrators]
    else:
        made = [hard.KINDS[part](FIRST_WORLD + i) for i in range(HARD)]
        cases = [(f"{part} {i}", world, list(world.demonstrators)) for i, world in enumerate(made)]
    return {"worlds": {name: compare(world, some) for name, world, some in cases}}


def compare(world, sources):
    """Return the share of regret and of episodes that logs save: predicted from logs, and in the true world."""
    counts = cs.count(
        [world.collect(name, LOG_STEPS, LOG_SEED) for name in sources], states=world.states, actions=world.actions
    )
    belief = cs.posterior(counts, horizon=world.horizon, reward_max=world.model.reward_range[1])
    found = belief.worth(steps=STEPS, seeds=DRAWN)

    def regret(logs, most):
        options = {"learner": "posterior", "steps": STEPS, "step_indexed": True, "reward_max": most}
        return np.array([cs.train(world, logs, seed=seed, **options).step_regret for seed in SEEDS])

    without, with_logs = regret(None, belief.settings.reward_bound), regret(belief, None)
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


def holds(parts):
    """What logs are predicted to save goes together with what they save, in worlds of all kinds.

    Draws the figure of the documentation.
    """
    worlds = [world for figures in parts.values() for world in figures["worlds"].values()]
    held = {name: np.array([world[name] for world in worlds]) for name in worlds[0]}
    said, true = held["predicted"], held["realised"]
    correlation = np.corrcoef(said, true)[0, 1]
    print(
        f"  {len(worlds)} worlds: correlation {correlation:.3g}; {said.mean():.3g} predicted, {true.mean():.3g} saved"
    )
    episodes = np.corrcoef(held["predicted episodes"], held["realised episodes"])[0, 1]
    print(f"  correlation of episodes: {episodes:.3g}")
    print(f"  sign right: {np.mean(np.sign(said) == np.sign(true)):.3g}; truly helped: {np.mean(true > 0):.3g}")
    print(f"  inside the interval: {np.mean((held['low'] <= true) & (true <= held['high'])):.3g}")
    draw(parts)
    return len(worlds) >= 60 and bool(correlation > LEAST_CORRELATION)


def draw(parts):
    """Draw what was saved over what was predicted, with the intervals."""
    figure = Figure(figsize=(6.4, 5.0), layout="constrained")
    axes = figure.add_subplot()
    kinds = {}
    for part, figures in parts.items():
        kinds.setdefault(part.split("; ")[0], []).extend(figures["worlds"].values())
    for kind, worlds in kinds.items():
        names = ("predicted", "realised", "low", "high")
        said, true, low, high = (100 * np.array([world[name] for world in worlds]) for name in names)
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
