"""The worlds of the field study and who is watched in them, against loops and Gymnasium's own rules."""

import importlib.util

import gymnasium as gym
import numpy as np
import pytest

from studies.field import sepsis as sepsis_module
from studies.field.demonstrators import CONFOUNDING, SKILLS, demonstrators, gamma_of
from studies.field.plan import Case
from studies.field.problems import PROBLEMS, blackjack
from studies.field.random_worlds import SHAPES
from studies.field.sepsis import INSTALL, MissingPackageError, package_folder

SEED = 11


def shaped(name, seed=SEED):
    return SHAPES[name](np.random.default_rng(seed))


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_the_same_for_the_same_seed_and_worth_learning(name):
    (model, horizon), (again, _), (other, _) = shaped(name), shaped(name), shaped(name, SEED + 1)
    assert np.array_equal(model.next_state, again.next_state)
    assert np.array_equal(model.noise, again.noise)
    assert not np.array_equal(model.noise, other.noise)
    exists = model.space.is_admissible
    at_random = model.evaluate(exists / exists.sum(axis=1, keepdims=True), horizon).values[0] @ model.start
    assert model.optimum(horizon).values[0] @ model.start > at_random + 0.1


@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize("confounding", CONFOUNDING)
def test_demonstrators_act_where_they_can_and_are_as_confounded_as_they_should(skill, confounding):
    model, _ = shaped("stages")
    people = demonstrators(model, skill, confounding, np.random.default_rng(1))
    gammas = [gamma_of(model, model.check_demonstrator(beta)) for beta in people.values()]
    if confounding == "none":
        assert gammas == pytest.approx([1, 1])
    else:
        assert min(gammas) > 2


def believed(model, beta):
    """E[reward + V*(next) | s, x] in logs."""
    best = model.optimum(discount=0.97)
    worth = model.reward + 0.97 * best.values[model.next_state]
    mass = model.noise[:, None, :] * beta.transpose(0, 2, 1)
    return (mass * worth).sum(-1) / mass.sum(-1), best.q_values


def test_hostile_logs_make_the_best_action_look_worse_and_the_others_better():
    for name in ("dense", "wide", "stock"):
        model, _ = shaped(name)
        beta = demonstrators(model, "good", "hostile", np.random.default_rng(1))["first"]
        seen, true = (table[~model.terminal] for table in believed(model, beta))
        best = true.argmax(axis=1)
        lift = np.take_along_axis(seen - true, best[:, None], 1)[:, 0]
        others = (seen - true).sum(axis=1) - lift
        assert (lift <= 1e-9).all()
        assert (others >= -1e-9).all()
        assert lift.min() < -0.01


def test_blackjack_is_gymnasiums():
    model = blackjack().model
    env, place = gym.make("Blackjack-v1"), {label: s for s, label in enumerate(model.states)}
    rng = np.random.default_rng(0)
    for game in range(1_000):
        hand, _ = env.reset(seed=game)
        s, x = place[tuple(map(int, hand))], int(rng.integers(2))
        hand, paid, over, _, _ = env.step(x)
        assert (model.next_state[s, x] == place.get(tuple(map(int, hand)), -1)).any() or over
        assert (model.reward[s, x] == paid).any()
    assert model.optimum(12).values[0] @ model.start == pytest.approx(-0.0466, abs=5e-4)  # known of an infinite deck


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_can_be_learned(name):
    model, horizon, noises = PROBLEMS[name]()
    assert len(noises) == model.noise.shape[-1]
    exists = model.space.is_admissible
    at_random = model.evaluate(exists / exists.sum(axis=1, keepdims=True), horizon).values[0] @ model.start
    assert model.optimum(horizon).values[0] @ model.start > at_random


@pytest.fixture
def small_ward(monkeypatch):
    """Tables of seven states and four actions in place of ICU-Sepsis."""
    rng = np.random.default_rng(5)
    chances = np.zeros((7, 25, 7))
    chances[:4] = rng.dirichlet(np.full(6, 0.4), (4, 25)) @ np.eye(6, 7)
    chances[[4, 5, 6], :, [4, 5, 6]] = 1.0
    exists = rng.random((7, 25)) < 0.3
    exists[:, 0] = True
    habit = rng.dirichlet(np.ones(25), 7)
    held = (chances, np.array([0.4, 0.3, 0.2, 0.1, 0, 0, 0]), habit, exists)
    monkeypatch.setattr(sepsis_module, "_published", lambda: held)
    sepsis_module.sepsis.cache_clear()
    yield held
    sepsis_module.sepsis.cache_clear()


def test_the_wards_treatments_do_what_is_published_and_survival_pays(small_ward):
    chances, _, _, exists = small_ward
    model = sepsis_module.sepsis()
    assert model.transitions()[:4][exists[:4]] == pytest.approx(chances[:4][exists[:4]])
    assert model.rewards()[:4][exists[:4]] == pytest.approx(chances[:4, :, 5][exists[:4]])
    assert model.noise.cumsum(axis=1)[:4].round(9).tolist()[0].count(0.5) == 1  # the sign is the median


@pytest.mark.parametrize("kind", ["good", "bad", "hostile"])
def test_clinicians_have_the_gamma_that_they_are_said_to_have(small_ward, kind):
    model = sepsis_module.sepsis()
    beta = sepsis_module.clinicians(kind, 3.0, np.random.default_rng(0))
    model.check_demonstrator(beta)
    assert gamma_of(model, beta) == pytest.approx(3.0)


@pytest.mark.skipif(importlib.util.find_spec("icu_sepsis") is None, reason=f"ICU-Sepsis is not installed: {INSTALL}")
def test_patients_of_icu_sepsis_survive_as_often_as_its_authors_say():
    """Average returns in the package's description: 0.78 at random, 0.78 of experts, 0.88 at best."""
    _, _, experts, exists = sepsis_module._published()
    model = sepsis_module.sepsis()
    transitions, rewards = model.transitions(), model.rewards()

    def survival(policy):
        """The chance to survive under a policy [states, actions], however long it takes."""
        after = np.einsum("sx,sxz->sz", policy, transitions)
        return np.linalg.solve(
            np.eye(len(after)) - np.where(model.terminal, 0.0, after), (policy * rewards).sum(axis=1)
        )

    at_random = exists / exists.sum(axis=1, keepdims=True)
    experts = np.where(exists, experts, 0.0) + np.where(exists, 0.0, experts).sum(axis=1, keepdims=True) * at_random
    policy, best = at_random, survival(at_random)
    for _ in range(10):  # policy iteration
        policy = np.eye(exists.shape[1])[np.where(exists, rewards + transitions @ best, -np.inf).argmax(axis=1)]
        best = survival(policy)
    returns = [values @ model.start for values in (survival(at_random), survival(experts), best)]
    assert returns == pytest.approx([0.78, 0.78, 0.88], abs=0.005)


def test_a_package_that_is_not_installed_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(MissingPackageError, match="pip install --no-deps icu-sepsis"):
        package_folder()


def test_a_script_of_the_same_name_does_not_hide_a_package(monkeypatch, tmp_path):
    """As examples/icu_sepsis.py would, which Python puts first on the path when it runs."""
    package, metadata = tmp_path / "packages" / "icu_sepsis", tmp_path / "packages" / "icu_sepsis-2.0.1.dist-info"
    package.mkdir(parents=True)
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: icu-sepsis\nVersion: 2.0.1\n")
    (tmp_path / "icu_sepsis.py").write_text("")
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path / "packages")])
    assert package_folder() == package


def test_a_case_makes_the_same_world_again_with_its_trial():
    case = Case("random", "dense", 3, "mixed", "strong", 500, trial=100)
    one, two = case.world(), case.world()
    assert list(one.demonstrators) == ["first", "second", "trial"]
    for name, beta in one.demonstrators.items():
        assert np.array_equal(beta, two.demonstrators[name])
