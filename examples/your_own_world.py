"""Two worlds of your own: a map in a text file with its wind, and a small clinic as tables.

    python your_own_world.py

Both are solved exactly; then values are bounded from the logs of a demonstrator of your own.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import causal_shaping as cs
from causal_shaping.plot import save_picture
from causal_shaping.plot.worlds import draw_world

output = Path("out")
output.mkdir(exist_ok=True)

# 1. A map: # wall, . free, L lava, G goal
MAP = """\
########
#...L..#
#...L.G#
#......#
########
"""
(output / "bridge.txt").write_text(MAP)


# 2. Its wind: probabilities of east, south, west, north and none, in each cell
def wind(x: int, y: int) -> tuple[float, ...]:
    """A north wind along the lower row, towards the lava; calm above."""
    return (0.0, 0.0, 0.0, 0.4, 0.6) if y == 3 else (0.0, 0.0, 0.0, 0.0, 1.0)


world = cs.load_world(output / "bridge.txt", wind=wind, horizon=15)
print(world)

# 3. What the best agent earns if it does not see the wind
best = world.model.optimum(horizon=world.horizon)
print("optimal value of an episode:", round(float(best.values[0] @ world.model.start), 3))

# 4. A demonstrator who does see it: beta[s, u, x], the probability of action x in state s under wind u
model = world.model
worth = model.reward + best.values[0][model.next_state]  # [s, x, u]: the value of each action, under each wind
beta = 0.02 + 0.9 * np.eye(len(world.actions))[worth.argmax(axis=1)]  # the best action; one time in ten a random one
watched = model.demonstrated(beta).optimum(horizon=world.horizon)
print("what the demonstrator earns:", round(float(watched.values[0] @ model.start), 3))

# 5. Its logs, and those of somebody who tries everything; then ceilings against the truth
logs = [world.collect(beta, steps=50_000, source="seeing"), world.collect("random", steps=50_000)]
counts = cs.count(logs)
ceilings = cs.value_ceilings(counts, horizon=world.horizon, reward_max=-0.1, confidence=0.95)
print(ceilings.verdict)
order = [ceilings.space.state_position(label) for label in world.states]
above = (ceilings.values[:, order] - best.values)[:, ~model.terminal]
print(f"ceiling minus optimum: {above.mean():.3f} on average, {above.min():.3f} at least")

# 6. Both on the map
figure = Figure(figsize=(13, 4.2), layout="constrained")
for axes, title, values in zip(
    figure.subplots(1, 2), ("optimal values", "ceilings"), (best.values[0], ceilings.values[0, order]), strict=True
):
    draw_world(world, values=values, policy=best.greedy()[0], limits=(-1.0, 0.0), title=title, axes=axes)
save_picture(figure, output / "bridge.png")

# 7. A clinic as tables over (state, action, hidden noise). Patients are mild or severe until they are well; the
#    doctor sees whether a patient tolerates the drug (u = 1, seven in ten), but the log does not show it
MILD, SEVERE, WELL = range(3)
next_state = np.array(
    [
        [[MILD, WELL], [SEVERE, WELL]],  # mild: rest, drug; each for u = 0, 1
        [[SEVERE, MILD], [SEVERE, WELL]],  # severe
        [[WELL, WELL], [WELL, WELL]],  # well: terminal, leads to itself and pays nothing
    ]
)
reward = np.where(next_state == WELL, 0.0, -1.0)  # a bad day costs 1
reward[:, 1] -= 0.2  # so does the drug, a little
reward[WELL] = 0.0
clinic = cs.TabularCMDP(
    next_state=next_state,
    reward=reward,
    noise=[[0.3, 0.7]] * 3,
    terminal=[False, False, True],
    start=[0.7, 0.3, 0.0],
    states=["mild", "severe", "well"],
    actions=["rest", "drug"],
)
truth = clinic.optimum(horizon=10)

# 8. The doctor prescribes the drug mostly to those who tolerate it; what infinitely long logs of that would show
doctor = np.array([[[0.9, 0.1], [0.2, 0.8]]] * 3)
shown = clinic.observe(doctor, source="doctor")
trial = clinic.observe(np.full((3, 2, 2), 0.5), source="trial")
largest = clinic.reward_range[1]
for name, seen, gamma in (
    ("doctor, anything hidden", [shown], float("inf")),
    ("doctor, taken at face value", [shown], 1.0),
    ("doctor and a randomised trial", [shown, trial], {"trial": 1.0}),
):
    bound = cs.value_ceilings(seen, horizon=10, reward_max=largest, confounding=gamma, support="any")
    q_values = bound.q_values[0].round(2)
    holds = bool((bound.q_values >= truth.q_values - 1e-9).all())
    print(f"{name:>30}: mild {q_values[0]}, severe {q_values[1]}, never below the truth: {holds}")
print(f"{'truth':>30}: mild {truth.q_values[0, 0].round(2)}, severe {truth.q_values[0, 1].round(2)}")
print(f"Written to {output.name}: {', '.join(sorted(path.name for path in output.iterdir()))}")
