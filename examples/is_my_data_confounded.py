"""Is my data confounded? What sources can tell about each other. See docs/tutorials/is-my-data-confounded.md."""

import math
from pathlib import Path

import numpy as np

import causal_shaping as cs


def blind(x, y, wind):
    """Walk down and then right, whatever the wind: this demonstrator does not look at it."""
    return "right" if y == 7 or x == 4 else "down"


def collect(world, folder, name, steps=100_000, seed=0, source=None):
    """Log a demonstrator, and return the path of the file."""
    path = folder / f"{source or name}.parquet"
    world.collect(name, steps=steps, seed=seed, source=source).save(path)
    return path


def gamma(contradiction):
    """Return the confounding that reconciles two sources, infinite if none does."""
    return math.inf if contradiction.confounding is None else contradiction.confounding


folder = Path("out")
folder.mkdir(exist_ok=True)

world = cs.load_world("lavacross-easy", demonstrators={"blind": cs.Demonstrator(blind)})
good, bad, random = (collect(world, folder, name) for name in ("good", "bad", "random"))
counts = cs.count([good, bad, random])
print(counts)

for found in cs.coverage(counts):
    print(
        f"{found.source}: acted in {found.states} states, in {len(found.few_visits)} of them fewer than 10 times; "
        f"never tried {len(found.untried_actions)} (state, action) pairs; "
        f"takes its most frequent action in {found.action_share:.0%} of steps"
    )

few = cs.count(collect(world, folder, "good", steps=1_000, source="few"))
for name, held in (("all three sources", counts), ("1,000 steps of good", few)):
    unseen, limit = cs.unseen_mass(held), cs.unseen_limit(held)
    worst = int(np.nanargmax(limit))
    print(f"{name}: an estimated {np.nanmean(unseen):.1%} unseen, at most {np.nanmedian(limit):.1%} in half of the")
    print(f"  states, and at most {limit[worst]:.1%} in {held.space.states[worst]}")

contradictions = sorted(cs.contradictions(counts), key=gamma, reverse=True)
for contradiction in contradictions:
    print("-", contradiction)

print(f"Smallest Gamma for all pairs of sources: {max(map(gamma, contradictions)):.2f}")
for first, second in (("good", "bad"), ("good", "random"), ("bad", "random")):
    between = [gamma(found) for found in contradictions if {found.first, found.second} == {first, second}]
    print(f"{first} and {second}: {len(between)} contradictions, Gamma {max(between, default=1.0):.2f}")

print(cs.contradictions(cs.count([random, collect(world, folder, "blind")])))

print(cs.contradictions(cs.count([bad, collect(world, folder, "bad", seed=1, source="bad-again")])))
