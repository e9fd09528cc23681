"""Your own logs: from two CSV files to a shaped agent. See docs/tutorials/own-logs.md."""

from collections import defaultdict
from pathlib import Path

import gymnasium as gym
import numpy as np
import pandas as pd

import causal_shaping as cs

DRUGS, DAYS, WORST = ("mild", "strong"), 20, 8


def next_stage(age, stage, drug, slept_well):
    """Return the stage of the illness on the next morning; 0 is recovered."""
    if slept_well:
        return max(stage - (2 if drug == "strong" else 1), 0)
    return min(stage + (0 if drug == "mild" else 3 if age >= 65 else 1), WORST)


def write_ward(path, strong_if_slept_well, columns, seed, patients=3000):
    """Write the records of a ward whose doctors ask how the night was, but do not record the answer."""
    names = ["patient", "day", "age", "stage", "drug", "score", "recovered", "next_age", "next_stage", "study_over"]
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        print(*names[:columns], sep=",", file=file)
        for patient in range(patients):
            age, stage, day = round(rng.uniform(30, 90), 1), int(rng.integers(3, WORST + 1)), 1
            while stage > 0 and day <= DAYS:
                slept_well = rng.random() < 0.6
                drug = DRUGS[slept_well == strong_if_slept_well] if rng.random() < 0.95 else rng.choice(DRUGS)
                after = next_stage(age, stage, drug, slept_well)
                row = [patient, day, age, stage, drug, -stage, after == 0, age, after, day == DAYS and after > 0]
                print(*row[:columns], sep=",", file=file)
                stage, day = after, day + 1


def write_untidy_ward(path, seed, patients=500):
    """Write the records of a third ward: doses instead of drugs, one outcome column, mornings without a stage."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        print("patient,day,age,stage,dose,score,outcome", file=file)
        for patient in range(patients):
            age, stage, outcome, day = round(rng.uniform(30, 90), 1), int(rng.integers(3, WORST + 1)), "", 1
            while not outcome:
                dose = round(rng.uniform(5, 40), 1)
                after = next_stage(age, stage, "mild" if dose < 20 else "strong", rng.random() < 0.6)
                outcome = "cured" if after == 0 else "died" if rng.random() < 0.01 else ""
                outcome = outcome or ("transferred" if day == DAYS else "")
                shown = "" if rng.random() < 0.02 else stage
                print(patient, day, age, shown, dose, -stage, outcome, sep=",", file=file)
                stage, day = after, day + 1


class Patient(gym.Env):
    """The user's own environment: it shows age and stage, but not how the night was."""

    observation_space = gym.spaces.Box(0.0, 100.0, (2,), dtype=np.float64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Admit a patient."""
        super().reset(seed=seed)
        self.age, self.stage, self.day = self.np_random.uniform(30, 90), int(self.np_random.integers(3, WORST + 1)), 0
        return np.array([self.age, self.stage]), {}

    def step(self, action):
        """Give a drug and wait for the next morning."""
        score, slept_well = -self.stage, self.np_random.random() < 0.6
        self.stage, self.day = next_stage(self.age, self.stage, DRUGS[action], slept_well), self.day + 1
        return np.array([self.age, self.stage]), score, self.stage == 0, self.day >= DAYS, {}


def q_learning(env, episodes, seed):
    """Train a plain Q-learning agent on the rewards of `env`; return the unshaped return of each episode."""
    rng, table, returns = np.random.default_rng(seed), defaultdict(lambda: np.zeros(2)), []
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        state, over = (observation[0] >= 65, int(observation[1])), False
        while not over:
            action = int(rng.integers(2) if rng.random() < 0.05 else table[state].argmax())
            observation, reward, terminated, truncated, info = env.step(action)
            after, over = (observation[0] >= 65, int(observation[1])), terminated or truncated
            target = reward + (0.0 if terminated else table[after].max())
            table[state][action] += 0.1 * (target - table[state][action])
            state = after
        returns.append(info["unshaped_return"])
    return returns


folder = Path("out")
folder.mkdir(exist_ok=True)
write_ward(folder / "ward-3.csv", strong_if_slept_well=True, columns=7, seed=1)
write_ward(folder / "ward-7.csv", strong_if_slept_well=False, columns=10, seed=2)
columns = {"episode": "patient", "step": "day", "state": ["age", "stage"], "action": "drug", "reward": "score"}
columns |= {"first_step": 1, "terminated": "recovered", "actions": DRUGS}
columns |= {"bins": {"age": cs.Bins(edges=(65,))}}
columns |= {"states": [(old, stage) for old in (0, 1) for stage in range(WORST + 1)]}
ward_3 = cs.open_logs(folder / "ward-3.csv", **columns)
ward_7 = cs.open_logs(folder / "ward-7.csv", truncated="study_over", **columns)
found = cs.inspect([ward_3, ward_7])
print(found)
shared = found.without_small_cells(11)
shared.save_html(folder / "logs.html")

counts = found.counts
ceilings = cs.value_ceilings(counts, horizon=DAYS, reward_max=-1, confidence=0.95)
print(ceilings)
ceilings.potential(step_indexed=False).save(folder / "phi.parquet")

floors = cs.value_floors(counts, horizon=DAYS, reward_min=-WORST, confidence=0.95)
ceilings.save_html(folder / "ceilings.html", floors=floors, inspection=shared)

phi = cs.load_potential(folder / "phi.parquet")
for observation in ([64.9, 8.0], [81.3, 8.0], [81.3, 2.0]):
    print(observation, "is", label := phi.space.label(observation), f"and worth {phi(label):.1f} at most")
print(cs.check_potential(Patient(), phi))
for name, potential in (("phi = 0", cs.Potential.zero(phi.space)), ("shaped", phi)):
    returns = np.mean([q_learning(cs.ShapeReward(Patient(), potential), 300, seed) for seed in range(20)], axis=0)
    print(f"{name:>7}:", *(f"{part.mean():6.1f}" for part in np.split(returns, 6)))

env = cs.ShapeReward(Patient(), phi, actions=DRUGS, record=True)
print("The wards alone:", *(f"{phi((1, stage)):.1f}" for stage in (2, 5, 8)))
for patients in (300, 3_000):
    q_learning(env, patients, seed=0)
    more = counts + cs.count(env.logs())
    own = {"confidence": 0.95, "confounding": {"agent": 1.0}}
    tighter = cs.value_ceilings(more, horizon=DAYS, reward_max=-1, **own).potential(step_indexed=False)
    print(f"{len(env.logs()):,} steps of its own:", *(f"{tighter((1, stage)):.1f}" for stage in (2, 5, 8)))

write_untidy_ward(folder / "ward-9.csv", seed=3)
ward_9 = pd.read_csv(folder / "ward-9.csv", dtype={"stage": "Int64"})
columns = {"episode": "patient", "step": "day", "first_step": 1, "state": ["age", "stage"], "reward": "score"}
columns |= {"source": "ward-9", "bins": {"age": cs.Bins(edges=(65,))}}
try:
    cs.count(cs.open_logs(ward_9, action="dose", **columns))
except cs.DataError as error:
    print(error)

ward_9["drug"] = np.where(ward_9["dose"] < 20, "mild", "strong")
try:
    cs.count(cs.open_logs(ward_9, action="drug", **columns))
except cs.DataError as error:
    print(error)

ends = {"terminated": {"outcome": ["died", "cured"]}, "truncated": {"outcome": ["transferred"]}}
print(cs.inspect(cs.open_logs(ward_9, action="drug", missing="unknown", **ends, **columns)))
