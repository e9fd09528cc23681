"""Rivals with networks: their gradients against torch, what they make of logs, and their part of the study."""

import csv
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_field import shrink

import causal_shaping as cs
from causal_shaping.models.cmdp import TabularCMDP
from studies.field import _network as network, plan as plans, run as runs, tables
from studies.field._packages import MissingPackageError
from studies.field.materials import Materials
from studies.field.metrics import compared, mean_ratio
from studies.field.networks import run_network
from studies.field.page import decisions, write_page
from studies.field.peers import run_dovi
from studies.field.plan import METHODS, RUN, Case, Plan
from studies.field.rivals import SETTINGS

STATES, ACTIONS, CLOCK, WIDTH, BATCH = 5, 3, 4, 6, 12


def some_weights(rng, clock=CLOCK):
    shapes = ((STATES, WIDTH), (clock, WIDTH), (WIDTH, WIDTH), (WIDTH,), (WIDTH, 2 * ACTIONS), (2 * ACTIONS,))
    return network.Weights(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes))


def some_rows(rng, size=30):
    return network.Rows(
        rng.integers(STATES, size=size).astype(np.int32),
        np.zeros(size, dtype=np.int32),  # it exists in all states
        rng.standard_normal(size),
        rng.integers(STATES, size=size).astype(np.int32),
        rng.random(size) < 0.3,
    )


def by_torch(weights, target, rows, drawn, steps, exists, threshold, conservative, discount):
    """The gradient of the mean loss, by automatic differentiation."""
    own = [torch.tensor(one, requires_grad=True) for one in weights]
    clock = len(weights.clock)

    def heads(tensors, state, step):
        first, ticks, second, bias, last, last_bias = tensors
        hidden = ((first[state] + ticks[step]).relu() @ second + bias).relu()
        both = (hidden @ last + last_bias).reshape(len(state), 2, ACTIONS)
        return both.masked_fill(~torch.tensor(exists)[state][:, None], -torch.inf).unbind(dim=1)

    at, taken, after = (
        torch.tensor(column[drawn], dtype=torch.int64) for column in (rows.state, rows.action, rows.after)
    )
    step = torch.tensor(steps)
    later = (step + 1).clamp(max=clock - 1)
    q_values, logits = heads(own, at, step)
    with torch.no_grad():
        following, imitated = heads(own, after, later)
        if threshold:
            share = imitated.softmax(dim=1)
            following = following.masked_fill(share <= threshold * share.amax(dim=1, keepdim=True), -torch.inf)
        future = heads([torch.tensor(one) for one in target], after, later)[0]
        worth = future.gather(1, following.argmax(dim=1, keepdim=True))[:, 0]
        goes_on = ~torch.tensor(rows.final[drawn]) & ((step + 1 < clock) | (clock == 1))
        goal = torch.tensor(rows.reward[drawn]) + discount * goes_on * worth
    found = q_values.gather(1, taken[:, None])[:, 0]
    loss = torch.nn.functional.smooth_l1_loss(found.double(), goal.double())
    if threshold:
        loss = loss + torch.nn.functional.cross_entropy(logits, taken)
    if conservative:
        loss = loss + conservative * (q_values.logsumexp(dim=1) - found).mean()
    loss.backward()
    return [one.grad.numpy() for one in own]


@pytest.mark.parametrize(("threshold", "conservative"), [(0.0, 0.0), (0.4, 0.0), (0.0, 0.7)])
def test_gradients_are_those_of_automatic_differentiation(threshold, conservative):
    rng = np.random.default_rng(3)
    weights, target, rows = some_weights(rng), some_weights(rng), some_rows(rng)
    exists = rng.random((STATES, ACTIONS)) < 0.7
    exists[:, 0] = True
    drawn, steps = rng.integers(30, size=BATCH), rng.integers(CLOCK, size=BATCH)
    given = (weights, target, rows, drawn, steps, exists, threshold, conservative, 0.9)
    for found, expected in zip(network.gradient_of(*given), by_torch(*given), strict=True):
        assert found == pytest.approx(expected, abs=1e-5)
    assert np.abs(expected).max() > 0.01


def test_a_network_that_does_not_see_the_step_has_values_that_do_not_end():
    rng = np.random.default_rng(4)
    weights, target, rows = some_weights(rng, 1), some_weights(rng, 1), some_rows(rng)
    exists, drawn, steps = np.ones((STATES, ACTIONS), dtype=bool), rng.integers(30, size=BATCH), np.zeros(BATCH, int)
    given = (weights, target, rows, drawn, steps, exists, 0.0, 0.0, 0.9)
    found, expected = network.gradient_of(*given), by_torch(*given)
    assert found.first == pytest.approx(expected[0], abs=1e-5)
    assert not found.clock.any()


def test_weights_move_as_by_torchs_adam():
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((4, 3)).astype(np.float32)
    own, mean, square = torch.tensor(weights, requires_grad=True), np.zeros_like(weights), np.zeros_like(weights)
    optimiser = torch.optim.Adam([own], lr=0.01)
    for done in range(1, 4):
        slope = rng.standard_normal(weights.shape).astype(np.float32)
        own.grad = torch.tensor(slope)
        optimiser.step()
        network.adam(weights, slope, mean, square, 0.01, done)
    assert weights == pytest.approx(own.detach().numpy(), abs=1e-6)


def test_the_best_action_exists_and_is_imitated_often_enough():
    heads = np.array([5.0, 4.0, 3.0, np.log(0.01), np.log(0.5), np.log(0.49)], dtype=np.float32)
    everything = np.ones(3, dtype=bool)
    assert network.best_of(heads, everything, 0.0) == 0
    assert network.best_of(heads, everything, 0.3) == 1
    assert network.best_of(heads, np.array([True, False, True]), 0.3) == 2


@pytest.fixture(scope="module")
def materials():
    return Materials(Case("random", "dense", 9_001, "good", "none", 40_000))


@pytest.mark.parametrize("method", ["bcq", "cql"])
def test_logs_without_hidden_causes_teach_a_network_to_act(materials, method):
    def run(seed, steps=1_500, **changes):
        return run_network(materials.world, steps, seed, materials.logs, **SETTINGS[method] | changes)

    taught, untaught = run(1), run(1, updates=0)
    assert taught[:300].sum() < 0.5 * untaught[:300].sum()
    assert taught.sum() < 0.5 * materials.at_random * 1_500
    again = run(1, 300)
    assert np.array_equal(run(1, 300), again)
    assert not np.array_equal(run(2, 300), again)


@pytest.fixture(scope="module")
def two_arms():
    """One state and two actions, of which the logs hold the worse one."""
    model = TabularCMDP(
        np.zeros((1, 2, 1), dtype=int), np.array([[[0.5], [-0.2]]]), np.ones((1, 1)), np.array([False]), np.ones(1)
    )
    world = cs.World("two", "two", model, 1, ("u",), {"one": np.array([[[0.0, 1.0]]])})
    return world, [world.collect("one", 400)]


def test_a_network_learns_from_rows_of_its_own(two_arms):
    regret = run_network(two_arms[0], 3_000, 0, two_arms[1], every=1, explore=0.1)
    assert regret[-500:].mean() < 0.05


def test_dovi_is_capped_by_what_the_logs_show_and_tries_the_rest(two_arms):
    pytest.importorskip("causalrl")
    assert run_dovi(two_arms[0], 500, 0, two_arms[1], bonus=1.0).sum() == 0
    better = two_arms[0].collect(np.array([[[1.0, 0.0]]]), 400, source="better")
    assert 0 < run_dovi(two_arms[0], 500, 0, [better], bonus=1.0).sum() < 0.2 * 0.7 * 500


@pytest.mark.parametrize("shape", ["stages", "walk"])
def test_dovi_takes_actions_that_exist_and_is_the_same_again(shape):
    pytest.importorskip("causalrl")
    one = Materials(Case("random", shape, 9_001, "good", "none", 5_000))
    first, again = (run_dovi(one.world, 600, 1, one.logs, **SETTINGS["dovi"]) for _ in range(2))
    assert np.isfinite(first).all()  # an action that does not exist has no regret
    assert np.array_equal(first, again)
    assert not np.array_equal(first, run_dovi(one.world, 600, 2, one.logs, **SETTINGS["dovi"]))


# In the study ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_networks(tmp_path_factory):
    """A small study of all methods, in which separate ones ran in one of two cases."""
    folder = tmp_path_factory.mktemp("networks")
    with pytest.MonkeyPatch.context() as patched:
        shrink(patched)
        patched.setattr(plans, "NETWORK_CASES", {"random": {plans.FAMILIES["random"].cases[0].name}})
        patched.setattr(runs, "NETWORK_SEEDS", 1)
        patched.setattr(runs, "package_folder", _without_causalrl)
        runs.run_field(Plan(families=("random",)), folder, workers=1)
        results, missing = runs.run_field(Plan(families=("random",), networks=True), folder, workers=1)
    write_page(results, missing)
    return results, missing


def _without_causalrl(name):
    raise MissingPackageError(f"Install {name}.")


def test_a_package_that_is_missing_leaves_out_its_method_and_nothing_else(with_networks):
    results, missing = with_networks
    assert missing == ["causalrl's DOVI: Install causalrl."]
    assert {row["name"] for row in results.runs} == set(METHODS) - {"dovi"}


def test_separate_methods_have_a_table_of_their_own_beside_all_others_in_the_same_cases(with_networks):
    results, _ = with_networks
    with (results.folder / "tables" / "networks-random.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert set(rows) == set(METHODS) - {"dovi"}
    assert {row["cases"] for row in rows.values()} == {"1"}
    found = compared(results, "random", "posterior")
    here = found.where(lambda case: case["case"] == compared(results, "random", "bcq").cases[0]["case"])
    assert float(rows["posterior"]["mean"]) == pytest.approx(float(mean_ratio(here.ratios)))
    usual = tables.family_table(results, "random")
    assert {one["method"] for one in usual.records} == {name for name, one in METHODS.items() if not one.separate}
    text = (results.folder / "index.html").read_text()
    date = next(row["date"] for row in results.timings if row["name"] == "bcq")
    assert f"ran, on {date}." in text
    assert "Rivals with networks are not part of this run" not in text
    assert all("BCQ" not in evidence for _, _, evidence in decisions(results))


def test_the_seconds_of_a_run_are_those_of_its_own_seeds(with_networks):
    results, _ = with_networks
    spent = [row["cpu_seconds"] for row in results.timings if row["name"] == "bcq" and row["kind"] == RUN]
    (record,) = (one for one in tables.network_table(results, "random").records if one["method"] == "bcq")
    assert record["cpu"] == pytest.approx(np.mean(spent))  # one seed


def test_a_rival_in_few_cases_is_compared_in_these(with_networks):
    results, _ = with_networks
    first = compared(results, "random", "bcq").cases[0]["case"]
    good, bad = ([{**row, "regret": row["regret"] * factor} for row in results.runs] for factor in (1e-6, 1.0))
    others = [row if row["name"] == "bcq" else plain for row, plain in zip(good, bad, strict=True)]
    ahead = {target: found for target, found, _ in tables.targets(replace(results, runs=tuple(others)))}
    assert "random: bcq (mean, worst decile)" in ahead["beats every rival's mean and worst decile in each family"]
    best = [{**row, "regret": 0.0} if (row["name"], row["case"]) == ("posterior", first) else row for row in others]
    ahead = {target: found for target, found, _ in tables.targets(replace(results, runs=tuple(best)))}
    assert "bcq" not in ahead["beats every rival's mean and worst decile in each family"]
