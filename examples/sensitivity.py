"""How much hidden confounding would it take? Bounds over Gamma. See docs/tutorials/sensitivity.md."""

import math
from pathlib import Path

import numpy as np

import causal_shaping as cs
from causal_shaping.plot import save_picture

folder = Path("out")
folder.mkdir(exist_ok=True)

world = cs.load_world("lavacross-easy")
good, bad, random = (world.collect(name, steps=300_000) for name in ("good", "bad", "random"))
counts = cs.count([good, random])
known = {"horizon": 20, "reward_max": -0.1, "reward_min": -1.1, "confidence": 0.95}
gammas = (1, 1.5, 2, 5, math.inf)
doubtful = cs.sensitivity(counts, confounding=gammas, **known)
print(doubtful)

space = doubtful.space
for s in np.flatnonzero(doubtful.breakdown >= 1):
    print(f"{space.actions[doubtful.best_action[s]]:>5} in {space.states[s]}: {doubtful.breakdown[s]:.3g}")

print(cs.confounding_of([good, random], hidden=["x", "y"]))

trial = cs.sensitivity(counts, confounding=gammas, fixed={"random": 1.0}, **known)
print(trial)
ceilings = cs.value_ceilings(counts, horizon=20, reward_max=-0.1, confounding={"random": 1.0}, confidence=0.95)
print(ceilings)

save_picture(doubtful, folder / "doubtful.png")
save_picture(trial, folder / "trial.png")
trial.save(folder / "trial.csv")

everybody = cs.count([good, bad, random])
contradicted = cs.sensitivity(everybody, confounding=gammas, **known)
print(contradicted)
print(contradicted.contradictions[0])
print(max(cs.contradictions(everybody), key=lambda found: found.confounding))
