"""What is measured, against independent computations."""

import numpy as np
import pytest

import causal_shaping as cs
from studies.paper.materials import Materials
from studies.paper.metrics import deployed_facts, potential_facts, run_facts

EASY = cs.load_world("lavacross-easy")
HARD = cs.load_world("lavacross-hard")


def test_deploying_the_optimum_costs_nothing_and_standing_still_costs_its_gap():
    materials = Materials(HARD, 100, seed=0)
    best = HARD.model.optimum().greedy()
    assert deployed_facts(materials, best, 1000, "steps")["regret"] == pytest.approx(0, abs=1e-9)
    still = HARD.actions.index("still")
    policy = np.full(len(HARD.states), still, dtype=np.int32)
    facts = deployed_facts(materials, policy, 1000, "steps")
    assert facts["regret"] == pytest.approx(1000 * HARD.model.start @ HARD.model.gaps()[:, still])
    assert facts["episodes"] == 1000 // HARD.horizon
    assert facts["curve"][-1] == pytest.approx(facts["regret"])
    episodes = deployed_facts(materials, policy, 1000, "episodes")
    assert (episodes["episodes"], episodes["steps"]) == (1000, 1000 * HARD.horizon)
    assert episodes["regret"] == pytest.approx(HARD.horizon * facts["regret"])


def test_the_facts_of_a_run_are_its_own():
    run = cs.train(EASY, None, learner="q-ucb-shaping", steps=4_000, seed=3)
    facts = run_facts(Materials(EASY, 100, seed=0), run)
    assert facts["regret"] == run.step_regret[-1] == facts["curve"][-1]
    assert facts["policy"] == run.policy.tolist()
    best = EASY.model.optimum()
    alive = ~EASY.model.terminal
    chosen = best.q_values[np.arange(len(EASY.states)), run.policy]
    assert facts["optimal"] == np.mean(chosen[alive] >= best.values[alive] - 1e-3)


@pytest.mark.parametrize("name", ["paper", "joint-capped", "floor"])
def test_the_facts_of_a_potential_count_what_lies_on_the_wrong_side(name):
    materials = Materials(HARD, 20_000, seed=2)
    facts = potential_facts(materials, name)
    best = HARD.model.optimum() if name == "joint-capped" else HARD.model.optimum(HARD.horizon)
    truth = dict(zip(HARD.states, best.values if name == "joint-capped" else best.values[0], strict=True))
    found = materials.potential(name)
    if name == "paper":
        assert facts["guaranteed"] is False
        assert facts["verdict"]
        assert facts["violations_all_steps"] is not None
    values = found.values if found.values.ndim == 1 else found.values[0]
    wrong, distances = 0, []
    for label, value in zip(found.space.states, values, strict=True):
        state = HARD.space.state_position(label)
        if HARD.model.terminal[state]:
            continue
        off = truth[label] - value if name == "floor" else value - truth[label]
        wrong += off < -1e-9
        if HARD.model.start[state] > 0:
            distances.append(abs(off))
    assert facts["violations"] == wrong
    assert facts["mean_distance"] == pytest.approx(np.mean(distances))
    assert facts["largest_distance"] == pytest.approx(np.max(distances))
    assert facts["states"] == sum(~HARD.model.terminal)
