"""Write the notebooks of this folder, without outputs: python make.py (needs nbformat)."""

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

FIRST_HOUR = """
# The first hour: from logs to a shaped agent

Takes half a minute to run. A world stands in for your data; where your own would come in, it says so.
%%
%matplotlib inline
import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np

import causal_shaping as cs
from causal_shaping.plot import draw
from causal_shaping.plot.worlds import draw_world

folder = Path(tempfile.mkdtemp())
%%
## 1. Data

A robot walks to a goal beside lava, pushed by wind. The demonstrators saw the wind; their logs do not hold it.
Arrows and rings in the cells are the winds.
%%
world = cs.load_world("lavacross-easy")
draw_world(world)
%%
Three sources, one file each. Yours take their place: Parquet or CSV with columns for episode, step, state, action and
reward.
%%
files = []
for name in world.demonstrators:
    files.append(folder / f"{name}.parquet")
    world.collect(name, steps=100_000, seed=0).save(files[-1])

cs.read_logs(files[0])
%%
## 2. Counts: what do the logs show?

`action_share` is the most that a source can prove of an action. `untried` is what nobody can speak about.
%%
counts = cs.count(files)
for seen in cs.coverage(counts):
    print(seen.source, seen.steps, "steps,", seen.states, "states, action share", round(seen.action_share, 2))
print("largest unseen mass of a state:", cs.unseen_mass(counts)[~world.model.terminal].max())
%%
## 3. Ceilings: what can an agent earn at most?

Whatever the demonstrators saw. `reward_max` is the most that a step can pay; you must know it. Read what it assumes.
%%
ceilings = cs.value_ceilings(counts, horizon=world.horizon, reward_max=-0.1, confidence=0.95)
print(ceilings)
%%
The ceilings on the map, and below them the truth, which only a stand-in lets us see.
%%
order = [ceilings.space.state_position(label) for label in world.states]
draw_world(world, values=ceilings.values[0, order], limits=(-1, 0), title="ceilings", winds=False)
%%
best = world.model.optimum(world.horizon)
draw_world(world, values=best.values[0], limits=(-1, 0), title="optimal values", winds=False)
%%
## 4. A potential for any agent

The shaped environment pays more for steps towards better states. `info` keeps what the world paid.
%%
phi = ceilings.potential()
phi.save(folder / "phi.parquet")
print(cs.check_potential(gym.make("causal_shaping/LavaCrossEasy-v0"), phi))

env = cs.ShapeReward(gym.make("causal_shaping/LavaCrossEasy-v0"), phi)
env.reset(seed=0)
_, reward, terminated, truncated, info = env.step(1)
reward, info
%%
## 5. Learners with and without it

Regret is what was lost on the way to the optimum, summed over steps: lower is better. The model-based learner that also
plans with the counts does about as well here as Q-UCB with ceilings; `docs/learners.md` compares them in all worlds.
%%
runs = {
    "Q-UCB, zero": cs.train_seeds(world, None, "q-ucb-shaping", 20_000, range(5), folder / "zero"),
    "Q-UCB, ceilings": cs.train_seeds(world, ceilings, "q-ucb-shaping-tight", 20_000, range(5), folder / "tight"),
    "UCBVI, ceilings and counts": cs.train_seeds(
        world, ceilings, "ucbvi-causal", 20_000, range(5), folder / "causal", counts=counts
    ),
}
for name, seeds in runs.items():
    print(f"{name:>27}: regret", round(float(np.mean([result.regret for result in seeds.results])), 1))
ax = None
for label, found in runs.items():
    ax = draw(found, ax, label=label)
%%
## Where to go next

Your own files: `docs/tutorials/own-logs.md`. Deep agents: `docs/tutorials/stable-baselines3.md`. Confounding:
`confounding.ipynb` beside this notebook.
"""

CONFOUNDING = '''
# See the confounding

What demonstrators earn against what an agent can, where their logs contradict each other, and how much confounding the
conclusions stand. Takes half a minute.
%%
%matplotlib inline
import numpy as np

import causal_shaping as cs
from causal_shaping.plot import draw
from causal_shaping.paper.diagram import draw_diagram
from causal_shaping.plot.worlds import draw_world

draw_diagram()
%%
## 1. The demonstrator sees what the log does not hold

A robot in a hallway. When it is about to fall, it needs a small or a big step; the competent demonstrator sees which.
An agent does not.
%%
robot = cs.load_world("walking-robot")


def earned(world, values):
    """Return the mean over the start states."""
    return round(float(values[0] @ world.model.start), 3)


best = robot.model.optimum(robot.horizon)
print("the best agent earns", earned(robot, best.values))
for name, beta in robot.demonstrators.items():
    print(name, "earns", earned(robot, robot.model.demonstrated(beta).optimum(robot.horizon).values))
%%
## 2. Logs taken at face value

A grid world: walk to the goal beside lava, pushed by wind that only demonstrators see.
%%
world = cs.load_world("lavacross-easy")
draw_world(world)
%%
`confounding=1.0` says that what followed an action is what the action does. Endless logs of one demonstrator, so that
chance plays no part: how many ceilings are then below the truth? A ceiling must not be, anywhere.
%%
truth = world.model.optimum(world.horizon)
for name in ("good", "bad"):
    shown = world.model.observe(world.demonstrators[name], source=name)
    for gamma in (1.0, 2.0, 5.0, float("inf")):
        bound = cs.value_ceilings(shown, world.horizon, -0.1, confounding=gamma, support="any")
        below = int((bound.q_values < truth.q_values - 1e-9).sum())
        print(f"{name}, Gamma {gamma:g}: {below} of {bound.q_values.size} ceilings below the truth")
%%
## 3. Two sources that cannot both be right

Two unconfounded sources would show the same after the same action. These do not.
%%
counts = cs.count([world.collect(name, steps=100_000, seed=0) for name in world.demonstrators])
for contradiction in cs.contradictions(counts):
    print(contradiction)
%%
What the action does, by the model: the random source was right, for it does not look at the wind.
%%
s, x = world.space.state_position((3, 1)), world.actions.index("right")
leads = world.model.transitions()[s, x]
{world.states[i]: round(float(leads[i]), 3) for i in np.flatnonzero(leads)}
%%
## 4. How much confounding do conclusions stand?

Gamma goes from 1, no confounding, to infinity, anything. Sources that contradict each other rule out the small ones.
%%
found = cs.sensitivity(counts, horizon=20, reward_max=-0.1, reward_min=-1.1, confounding=(1, 2, 5, 10, float("inf")))
print(*found.findings(), sep="\\n")
draw(found);
%%
And if you know that the random source is a randomised trial, whatever the others were?
%%
trial = cs.sensitivity(counts, 20, -0.1, -1.1, confounding=(10, float("inf")), fixed={"random": 1.0})
print(*trial.findings(), sep="\\n")
%%
## What it assumed

Hidden causes are drawn afresh each step. One that lasts over an episode breaks all bounds of this kind, and nothing in
these figures would show it.
'''


def write(name: str, text: str) -> None:
    """Write a notebook: cells divided by %%, text first, then code and text as they come."""
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
