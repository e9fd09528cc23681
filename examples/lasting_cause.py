"""When a hidden cause lasts: what breaks, what shows it, what helps. See docs/tutorials/lasting-cause.md."""

import numpy as np
import pandas as pd

import causal_shaping as cs

DAYS, PATIENTS = 3, 4_000
DRUGS = ("red", "blue")


def stays(doctor, prefers, lasts, seed):
    """Return the log of a doctor: each day red or blue; the right one heals in 9 of 10 cases, the wrong one in 1 of 10.

    Which drug is right is never logged. It `lasts` for the whole stay, or is drawn afresh each day.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for patient in range(PATIENTS):
        right = rng.integers(2)
        for day in range(DAYS):
            right = right if lasts else rng.integers(2)
            drug = prefers if rng.random() < 0.8 else 1 - prefers
            better = rng.random() < (0.9 if drug == right else 0.1)
            rows.append((doctor, patient, day, "ill", DRUGS[drug], float(better), "ill", False, day == DAYS - 1))
    names = ["source", "episode", "step", "state", "action", "reward", "next_state", "terminated", "truncated"]
    return pd.DataFrame(rows, columns=names)


def with_memory(log):
    """Return the log with what the stay has shown so far as its state: good and bad days with each drug."""
    days = {(drug, paid): (log.action == drug) & (log.reward == paid) for drug in DRUGS for paid in (1.0, 0.0)}
    today = pd.DataFrame(days).astype(int)
    after = today.groupby(log.episode).cumsum()
    return log.assign(state=text_of(after - today), next_state=text_of(after))


def text_of(days):
    """Return counts of days as labels such as 1-0-0-1."""
    return days.astype(str).agg("-".join, axis=1)


def optimum(lasts, day=0, belief=0.5):
    """Return the most that a policy can earn from a day on; `belief` is the chance of one drug to be right."""
    if day == DAYS:
        return 0.0
    values = []
    for right in (belief, 1 - belief):  # of the drug that is taken: this one, the other
        heals = 0.9 * right + 0.1 * (1 - right)
        after = (0.9 * right / heals, 0.1 * right / (1 - heals)) if lasts else (0.5, 0.5)
        good, bad = (optimum(lasts, day + 1, one) for one in after)
        values.append(heals * (1 + good) + (1 - heals) * bad)
    return max(values)


for lasts in (False, True):
    print(f"The right drug {'lasts for the stay' if lasts else 'is drawn afresh each day'}.")
    logs = [stays("Dr. Red", 0, lasts, seed=1), stays("Dr. Blue", 1, lasts, seed=2)]
    counts = cs.count(logs, complete=True)
    ceilings = cs.value_ceilings(counts, DAYS, 1.0, confounding=1.0, confidence=0.95)
    print(f"optimum {optimum(lasts):.3f}, ceiling {ceilings.values[0, 0]:.3f}")
    print(f"contradictions: {len(cs.contradictions(counts))}")
    print(cs.persistence_test(logs).summary())
    print()

logs = [with_memory(log) for log in logs]  # those of the cause that lasts
counts = cs.count(logs, complete=True)
ceilings = cs.value_ceilings(counts, DAYS, 1.0, confounding=1.0, confidence=0.95)
first = counts.space.state_position("0-0-0-0")
print(f"with memory: optimum {optimum(lasts=True):.3f}, ceiling {ceilings.values[0, first]:.3f}")
print(f"with memory: persistence test, p = {cs.persistence_test(logs).p_value:.2g}")
