"""What the learner "posterior" spends: a plan beside CSR products over its entries, and how often it plans.

A plan looks at each entry of the drawn world once a step of the horizon, so that as many sparse products are the
yardstick.
"""

import numpy as np
from scipy.sparse import csr_array

import causal_shaping as cs
from causal_shaping.beliefs._kernels import draw, plan_values
from causal_shaping.beliefs.model import Model, room_for
from causal_shaping.learners import training
from studies.speed._made_up import regular_counts
from studies.speed._table import Row, alone, in_turns

HORIZON = 20
WORLD = "lavacross-easy"


def plans(states):
    """Measure a plan beside a CSR product for each step."""
    counts = regular_counts(states)
    belief = cs.posterior(counts, horizon=HORIZON, reward_max=-0.1)
    model = Model(counts.space, belief.counts, belief.settings)
    rng, memory = np.random.default_rng(0), model.memory(0)
    drawn, admissible = room_for(model, memory), counts.space.is_admissible
    planned = np.zeros((HORIZON + 1, states + 1)), np.zeros(HORIZON + 1)
    works = {
        "draw": lambda: draw(rng, model.shape, model.guess, memory, admissible, drawn),
        "plan": lambda: plan_values(model.shape, memory, drawn, admissible, model.terminal, *planned),
    }
    for work in works.values():
        work()
    used = int(drawn.first[-1])
    held = drawn.chance[:used].copy(), drawn.after[:used].copy(), drawn.first.copy()  # the next draw writes to them
    matrix = csr_array(held, shape=(model.cells, states + 1))
    values = np.random.default_rng(1).random(states + 1)
    works["products"] = lambda: [matrix @ values for _ in range(HORIZON)]
    seconds = in_turns(works, 5)
    size = f"{states:,} states, {HORIZON} steps"
    yardstick = f"{HORIZON} CSR products"
    yield Row(f"posterior, a plan: {size}", seconds["plan"], "CPU s", yardstick, seconds["products"], most=1.0)


def replans(episodes):
    """Count plans, and the CPU time of runs, with twice the episodes beside half of them."""
    world, samplers, made = cs.load_world(WORLD), [], training.sampler_of
    training.sampler_of = lambda *arguments: samplers.append(made(*arguments)) or samplers[-1]
    steps = 2 * episodes * world.horizon

    def learn(most):
        return cs.train(world, learner="posterior", steps=steps, episodes=most)

    learn(2)  # compile
    seconds = in_turns({"half": lambda: learn(episodes), "whole": lambda: learn(2 * episodes)}, 2)
    half, whole = (int(sampler.plans[0]) for sampler in samplers[-2:])
    size = f"{WORLD}, {2 * episodes:,} episodes"
    yield Row(f"posterior, plans: {size}", whole, "plans", "half of them", half, most=1.2)
    yield Row(f"posterior, a run: {size}", seconds["whole"], "CPU s", "half of them", seconds["half"], most=2.3)


def rows(quick):
    for states in (1000, 10_000) if quick else (1000, 100_000):
        yield from alone(plans, states)
    yield from alone(replans, 20_000)
