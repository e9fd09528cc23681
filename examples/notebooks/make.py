"""Write the notebooks of this folder, without outputs: python make.py (needs nbformat)."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FIRST_HOUR = """
# The first hour: from logs to a shaped agent

Takes half a minute to run. A simulated world stands in for your data; the text says where your own data would go.
%%
%matplotlib inline
import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np

import causal_shaping as cs
from causal_shaping.plot.worlds import draw_world

folder = Path(tempfile.mkdtemp())
%%
## 1. Data

A robot walks to a goal beside lava, pushed by wind. The demonstrators saw the wind; their logs do not contain it.
Arrows and rings in the cells show the winds.
%%
world = cs.load_world("lavacross-easy")
world.plot();
%%
There are three sources, one file each. Use your own files here: Parquet or CSV with columns for episode, step, state,
action and reward.
%%
files = []
for name in world.demonstrators:
    files.append(folder / f"{name}.parquet")
    world.collect(name, steps=300_000, seed=0).save(files[-1])

cs.read_logs(files[0])
%%
## 2. Inspect: what are the logs worth?

What each source covers, how much may not have been seen yet, whether a hidden cause lasts over the episode, and where
two sources contradict each other.
`save_html` writes the same as a page that can be shared, with small counts hidden.
%%
found = cs.inspect(files)
print(found)
found.without_small_cells(11).save_html(folder / "logs.html")
%%
The rows of every source and state, as a table; `found.plot()` draws them.
%%
found
%%
## 3. Ceilings: what can an agent earn at most?

The ceilings hold whatever the demonstrators saw. `reward_max` is the largest reward that a step can pay; you must know
it. Read what the ceilings assume. With confidence, a state needs some 1,500 visits (`rarest=0.01`); otherwise anything
may follow it.
%%
counts = found.counts
ceilings = cs.value_ceilings(counts, horizon=world.horizon, reward_max=-0.1, confidence=0.95)
print(ceilings)
%%
The ceilings on the map, and below them the truth, which we can see only because the world is simulated.
%%
order = [ceilings.space.state_position(label) for label in world.states]
draw_world(world, values=ceilings.values[0, order], limits=(-1, 0), title="ceilings", winds=False)
%%
best = world.model.optimum(horizon=world.horizon)
draw_world(world, values=best.values[0], limits=(-1, 0), title="optimal values", winds=False)
%%
## 4. A potential for any agent

The shaped environment pays more for steps towards better states. `info` keeps the unshaped reward.
%%
phi = ceilings.potential()
phi.save(folder / "phi.parquet")
print(cs.check_potential(gym.make("causal_shaping/LavaCrossEasy-v0"), phi))

env = cs.ShapeReward(gym.make("causal_shaping/LavaCrossEasy-v0"), phi)
env.reset(seed=0)
_, reward, terminated, truncated, info = env.step(1)
reward, info
%%
## 5. Learners with and without the potential

Regret is what was lost relative to the optimum, summed over steps: lower is better. The printed rule
clips values at the potential, which does harm where that is negative, and has a bonus that does harm where it is not;
with neither, the ceilings pay off here. `docs/learners.md` compares them in all worlds.
%%
common = {"learner": "q-ucb-shaping", "steps": 20_000, "seeds": range(5)}
runs = {
    "zero": cs.train_seeds(world, None, folder=folder / "zero", **common),
    "ceilings, as printed": cs.train_seeds(world, ceilings, folder=folder / "printed", **common),
    "ceilings, no bonus, clip at 0": cs.train_seeds(
        world, ceilings, bonus=0.0, clip="zero", folder=folder / "plain", **common
    ),
}
for name, seeds in runs.items():
    print(f"{name:>29}: regret", round(float(np.mean([result.regret for result in seeds.results])), 1))
ax = None
for label, seeds in runs.items():
    ax = seeds.plot(ax, label=label)
%%
## Where to go next

Your own files: `docs/tutorials/own-logs.md`. Deep agents: `docs/tutorials/stable-baselines3.md`. Confounding:
`confounding.ipynb` beside this notebook.
"""

CONFOUNDING = '''
# See the confounding

What demonstrators earn compared with what an agent can earn, where their logs contradict each other, and how much
confounding the conclusions withstand. Takes half a minute.
%%
%matplotlib inline
import numpy as np

import causal_shaping as cs
%%
## 1. The demonstrator sees what is not logged

A robot walks along a hallway. When it is about to fall, it needs a small or a big step; the competent demonstrator sees
which. An agent does not.
%%
robot = cs.load_world("walking-robot")


def earned(world, values):
    """Return the mean over the start states."""
    return round(float(values[0] @ world.model.start), 3)


best = robot.model.optimum(horizon=robot.horizon)
print("the best agent earns", earned(robot, best.values))
for name, beta in robot.demonstrators.items():
    print(name, "earns", earned(robot, robot.model.demonstrated(beta).optimum(horizon=robot.horizon).values))
%%
## 2. Logs taken at face value

A grid world: walk to the goal beside lava, pushed by a wind that only demonstrators see.
%%
world = cs.load_world("lavacross-easy")
world.plot();
%%
`confounding=1.0` says that what followed an action is what the action does. We use infinitely long logs of one
demonstrator, so that sampling error plays no part. How many ceilings are then below the truth? None should be.
%%
truth = world.model.optimum(horizon=world.horizon)
for name in ("good", "bad"):
    shown = world.model.observe(world.demonstrators[name], source=name)
    for gamma in (1.0, 2.0, 5.0, float("inf")):
        bound = cs.value_ceilings(shown, world.horizon, -0.1, support="any", confounding=gamma)
        below = int((bound.q_values < truth.q_values - 1e-9).sum())
        print(f"{name}, Gamma {gamma:g}: {below} of {bound.q_values.size} ceilings below the truth")
%%
## 3. Two sources that cannot both be right

Two unconfounded sources that watch the same world would show the same outcomes after the same action, if no hidden
cause lasts. These do not.
%%
counts = cs.count([world.collect(name, steps=300_000, seed=0) for name in world.demonstrators])
for contradiction in cs.contradictions(counts):
    print(contradiction)
%%
What the action really does, according to the model: the random source was right, because it does not look at the wind.
%%
s, x = world.space.state_position((3, 1)), world.actions.index("right")
leads = world.model.transitions()[s, x]
{world.states[i]: round(float(leads[i]), 3) for i in np.flatnonzero(leads)}
%%
## 4. How much confounding do the conclusions withstand?

Gamma ranges from 1, no confounding, to infinity, no limit. Sources that contradict each other rule out small Gammas.
What is called suboptimal must be so beyond chance: hence the confidence.
%%
settings = {"horizon": 20, "reward_max": -0.1, "reward_min": -1.1, "confidence": 0.95}
found = cs.sensitivity(counts, confounding=(1, 2, 5, 10, float("inf")), **settings)
print(*found.findings(), sep="\\n")
found.plot();
%%
And what if you know that the random source is a randomised trial, whatever the others are?
%%
trial = cs.sensitivity(counts, confounding=(10, float("inf")), fixed={"random": 1.0}, **settings)
print(*trial.findings(), sep="\\n")
%%
## What it assumed

Hidden causes are drawn afresh at each step. One that persists over an episode breaks all bounds of this kind, and
nothing in these figures would show it; `cs.persistence_test` may. Episodes were not selected by their outcome.
'''


def write(name: str, text: str) -> None:
    """Write a notebook: cells are separated by %%; what does not compile, or starts with #, is text."""
    cells = []
    for i, part in enumerate(text.strip().split("\n%%\n")):
        prose = part.startswith("#") or not _compiles(part)
        cells.append((new_markdown_cell if prose else new_code_cell)(part.strip(), id=f"cell-{i}"))
    notebook = new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.validate(notebook)
    nbformat.write(notebook, Path(__file__).with_name(name))


def _compiles(part: str) -> bool:
    try:
        compile(part.removeprefix("%matplotlib inline\n"), "cell", "exec")
    except SyntaxError:
        return False
    return True


write("first_hour.ipynb", FIRST_HOUR)
write("confounding.ipynb", CONFOUNDING)
