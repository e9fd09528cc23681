"""ICU-Sepsis: treatments chosen by clinicians who saw more than their CSV holds. See docs/tutorials/icu-sepsis.md."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import causal_shaping as cs

sys.path.append(str(Path(__file__).parents[1]))  # the ward is that of the field study
from studies.field.sepsis import HORIZON, clinicians, sepsis

DRUGS = tuple(f"fluids{fluids}-pressors{drugs}" for fluids in range(5) for drugs in range(5))


def hospital():
    """Return the ward as a world, made of the tables of the package icu-sepsis."""
    try:
        tables = sepsis()
    except ImportError as error:
        raise SystemExit(str(error)) from error
    model = cs.TabularCMDP(
        tables.next_state,
        tables.reward,
        tables.noise,
        tables.terminal,
        tables.start,
        actions=DRUGS,
        admissible=tables.space.is_admissible,
    )
    exists = model.space.is_admissible
    by_lot = np.broadcast_to((exists / exists.sum(axis=1, keepdims=True))[:, None], (*model.noise.shape, len(DRUGS)))
    who = {"ward": clinicians("good", 2.0, np.random.default_rng(0)), "trial": by_lot}
    return cs.World("icu-sepsis", "ICU-Sepsis", model, HORIZON, tuple(map(str, range(model.noise.shape[1]))), who)


def write(world, who, rows, path):
    """Write what somebody did as the CSV that a hospital would send: without the sign that was seen."""
    logs = world.collect(who, steps=rows).to_pandas()
    lives = logs.reward > 0
    outcome = np.where(lives, "survived", np.where(logs.terminated, "died", np.where(logs.truncated, "moved", "")))
    frame = pd.DataFrame({"patient": logs.episode, "day": logs.step, "state": logs.state, "drug": logs.action})
    frame.assign(outcome=outcome, survived=lives.astype(int)).to_csv(path, index=False)


def opened(path, **options):
    """Return the logs of such a file, with the meaning of its columns."""
    columns = {"episode": "patient", "step": "day", "action": "drug", "reward": "survived", "actions": DRUGS}
    ends = {"terminated": {"outcome": ["survived", "died"]}, "truncated": {"outcome": ["moved"]}}
    return cs.open_logs(path, **columns, **ends, **options)


folder = Path("out")
folder.mkdir(exist_ok=True)
warnings.simplefilter("ignore", cs.AssumptionWarning)  # the summaries print what is assumed
world = hospital()
write(world, "ward", 50_000, folder / "ward.csv")
write(world, "trial", 5_000, folder / "trial.csv")
exists = world.space.is_admissible
formulary = [(state, DRUGS[x]) for state, x in np.argwhere(exists & ~world.model.terminal[:, None])]
pd.DataFrame(formulary, columns=["state", "drug"]).to_csv(folder / "formulary.csv", index=False)

found = cs.inspect(opened(folder / "ward.csv"), states=world.states, admissible=exists)
print(found)
found.without_small_cells(11).save_html(folder / "ward.html")

belief = cs.posterior(found.counts, horizon=HORIZON, reward_max=1.0, draws=50)
print(belief.worth(steps=500, seeds=4))

without = cs.train(world, learner="posterior", steps=1_000)
with_logs = cs.train(world, belief, steps=1_000)
print(f"Regret without the logs {without.step_regret[-1]:.1f}, with them {with_logs.step_regret[-1]:.1f}")
print("Steps after which the logs were dropped:", with_logs.alarm)

ceilings = cs.value_ceilings(found.counts, horizon=HORIZON, reward_max=1.0, value_max=1.0, confidence=0.95)
print(ceilings)
best = world.model.optimum(horizon=HORIZON).values[0]
acting = ~world.model.terminal
print(f"Ceilings below the true optimum: {(ceilings.values[0] < best - 1e-9)[acting].sum()} of {acting.sum()}")

phi = belief.potential(step_indexed=False)
phi.save(folder / "phi.parquet")
likeness = np.corrcoef(phi.values[acting], best[acting])[0, 1]
print(f"Correlation of the best guess with the true values: {likeness:.2f}")
for name, potential in (("phi = 0", None), ("best guess", phi)):
    run = cs.train(world, potential, learner="q-ucb-shaping", steps=20_000, clip="none")
    print(f"Q-learning with {name}: regret {run.step_regret[-1]:.1f}")

trial = cs.count(opened(folder / "trial.csv"), states=world.states, admissible=exists)
both = found.counts + trial
known = {"confounding": {"trial": 1.0}}
tighter = cs.value_ceilings(both, horizon=HORIZON, reward_max=1.0, value_max=1.0, confidence=0.95, **known)
start, guess = world.model.start, cs.posterior(both, horizon=HORIZON, reward_max=1.0, **known)
for name, bound in (("ward", ceilings), ("ward and trial", tighter)):
    print(f"{name}: survival at the start is at most {bound.values[0] @ start:.3f}; truly {best @ start:.3f}")
with_trial = cs.train(world, guess, steps=1_000)
print(f"Regret with ward and trial {with_trial.step_regret[-1]:.1f}; dropped after: {with_trial.alarm}")
