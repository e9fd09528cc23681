"""Images as features of an encoder of one's own, `observe=`."""

import copy

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pytest

import causal_shaping as cs
from causal_shaping.errors import ArgumentError, DataError, FileError

pytest.importorskip("sklearn")

SIDE, HORIZON = 8, 3
MOVES = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])
OPTIONS = {"reward_max": 0.0, "horizon": HORIZON, "members": 1, "trees": 2}


def image_of(places):
    """A dark square of 8 by 8 with one bright pixel at each place: uint8 [n, 8, 8, 1]."""
    places = np.asarray(places)
    images = np.zeros((len(places), SIDE, SIDE, 1), dtype=np.uint8)
    images[np.arange(len(places)), places[:, 1], places[:, 0]] = 255
    return images


def place_of(images):
    """The encoder: where the bright pixel is, [n, 2]."""
    bright = images.reshape(len(images), -1).argmax(axis=1)
    return np.stack([bright % SIDE, bright // SIDE], axis=1)


@pytest.fixture(scope="module")
def walks():
    """Places that somebody walked over, [episodes, steps + 1, 2], and what was done."""
    rng = np.random.default_rng(0)
    episodes, steps = 150, 6
    action = rng.integers(4, size=(episodes, steps))
    place = np.empty((episodes, steps + 1, 2), dtype=np.int64)
    place[:, 0] = rng.integers(SIDE, size=(episodes, 2))
    for h in range(steps):
        place[:, h + 1] = np.clip(place[:, h] + MOVES[action[:, h]], 0, SIDE - 1)
    return place, action


def log_of(walks, shown):
    """The log of a walk whose states are shown as arrays [n, *shape]."""
    place, action = walks
    episodes, steps = action.shape
    here, after = (pa.FixedShapeTensorArray.from_numpy_ndarray(shown(part.reshape(-1, 2)))
                   for part in (place[:, :-1], place[:, 1:]))  # fmt: skip
    goal = (place[:, 1:] == SIDE - 1).all(axis=2).ravel()
    rows = {"source": ["walker"] * goal.size, "episode": np.repeat(np.arange(episodes), steps)}
    rows |= {"step": np.tile(np.arange(steps), episodes), "action": action.ravel(), "reward": goal - 1.0}
    return pa.table(rows | {"state": here, "next_state": after})


@pytest.fixture(scope="module")
def images(walks):
    return log_of(walks, image_of)


@pytest.fixture(scope="module")
def fitted(images):
    return cs.fit_ceilings(images, observe=place_of, **OPTIONS)


EVERYWHERE = np.array([(x, y) for x in range(SIDE) for y in range(SIDE)])


def test_images_with_an_encoder_give_the_ceilings_of_its_features(walks, fitted):
    features = cs.fit_ceilings(log_of(walks, lambda places: places.astype(np.float32)), **OPTIONS)
    places, shown = EVERYWHERE.astype(np.float32), image_of(EVERYWHERE)
    assert np.ptp(features(places)) > 0.1  # there is something to tell apart
    for h in range(HORIZON):
        assert (fitted(shown, h) == features(places, h)).all()
        assert (fitted.potential().values(shown, h) == features.potential().values(places, h)).all()
    assert (fitted.q_values(shown) == features.q_values(places)).all()
    assert (fitted.spread(shown) == features.spread(places)).all()
    assert (fitted.is_beyond(shown) == features.is_beyond(places)).all()
    assert fitted.diagnostics.left == features.diagnostics.left


def test_floors_take_an_encoder_too(walks, images):
    options = {"reward_min": -1.0, "horizon": 2, "members": 1, "trees": 2}
    features = cs.fit_floors(log_of(walks, lambda places: places.astype(np.float32)), **options)
    found = cs.fit_floors(images, observe=place_of, **options)
    assert (found(image_of(EVERYWHERE)) == features(EVERYWHERE.astype(np.float32))).all()


def test_an_encoder_gets_copies_a_few_at_a_time(images, fitted, monkeypatch):
    from causal_shaping.fitted import _features

    sizes = []

    def spoiling(seen):
        sizes.append(len(seen))
        places = place_of(seen)
        seen[:] = 7
        return places

    monkeypatch.setattr(_features, "AT_ONCE", 100 * SIDE * SIDE)
    found = cs.fit_ceilings(images, observe=spoiling, **OPTIONS)
    assert max(sizes) == 100
    assert (found(image_of(EVERYWHERE)) == fitted(image_of(EVERYWHERE))).all()


def test_images_without_an_encoder_are_refused(images):
    with pytest.raises(ArgumentError, match=r"arrays of shape \(8, 8, 1\).*Pass observe="):
        cs.fit_ceilings(images, **OPTIONS)


@pytest.mark.parametrize(
    ("encoder", "error", "text"),
    [
        (lambda seen: place_of(seen)[:, 0], ArgumentError, r"returned int64 of shape \(\d+,\)"),
        (lambda seen: place_of(seen)[1:], ArgumentError, "a row of features for each observation"),
        (lambda seen: [["a"]] * len(seen), ArgumentError, "array of numbers"),
        (lambda seen: place_of(seen) / 0.0, DataError, "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide|invalid)")
def test_what_is_no_row_of_features_is_refused(images, encoder, error, text):
    with pytest.raises(error, match=text):
        cs.fit_ceilings(images, observe=encoder, **OPTIONS)


def test_other_images_are_refused(fitted):
    with pytest.raises(ArgumentError, match=r"must be \[n, 8, 8, 1\]: state"):
        fitted(image_of(EVERYWHERE)[..., 0])
    with pytest.raises(ArgumentError, match="the logs held uint8"):
        fitted(image_of(EVERYWHERE) / 255)


def test_a_fit_is_loaded_with_its_encoder_and_not_without(fitted, tmp_path):
    fitted.save(tmp_path / "phi")
    shown = image_of(EVERYWHERE)
    assert (cs.FittedCeilings.load(tmp_path / "phi", observe=place_of)(shown) == fitted(shown)).all()
    phi = cs.load_potential(tmp_path / "phi", kind="mean", observe=place_of)
    assert (phi.values(shown, 1) == fitted.potential("mean").values(shown, 1)).all()
    for load in (cs.FittedCeilings.load, cs.load_potential):
        with pytest.raises(ArgumentError, match=r"phi was fitted with observe=, .* Pass the same function again"):
            load(tmp_path / "phi")
    other = cs.FittedCeilings.load(tmp_path / "phi", observe=lambda seen: place_of(seen)[:, :1])
    with pytest.raises(ArgumentError, match="returned 1 features, but the ceilings were fitted to 2"):
        other(shown)


def test_an_encoder_for_what_has_none_is_refused(walks, tmp_path):
    cs.fit_ceilings(log_of(walks, lambda places: places.astype(np.float32)), **OPTIONS).save(tmp_path / "phi")
    with pytest.raises(ArgumentError, match="phi was fitted without observe="):
        cs.load_potential(tmp_path / "phi", observe=place_of)
    cs.Potential.zero(cs.Space(["a"], ["go"])).save(tmp_path / "phi.parquet")
    with pytest.raises(ArgumentError, match="is a file: kind, step_indexed and observe are for fits"):
        cs.load_potential(tmp_path / "phi.parquet", observe=place_of)


class Screen(gym.Env):
    """A walk that shows images."""

    observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8)
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = np.array([[3, 3]])
        return image_of(self.at)[0], {}

    def step(self, action):
        self.at = np.clip(self.at + MOVES[action], 0, SIDE - 1)
        return image_of(self.at)[0], -1.0, False, False, {}


def test_an_environment_of_images_is_shaped_and_its_spec_holds_no_folder(fitted, tmp_path):
    fitted.save(tmp_path / "phi")
    env = cs.ShapeReward(Screen(), fitted.potential(step_indexed=False))
    env.reset(seed=0)
    before, after = fitted(image_of([[3, 3], [4, 3]]))
    assert env.step(2)[1] == pytest.approx(-1.0 + after - before)
    assert fitted.potential().path is None
    gym.register("causal_shaping_test/Screen-v0", Screen)
    shaped = cs.ShapeReward(gym.make("causal_shaping_test/Screen-v0"), fitted.potential())
    assert gym.make(copy.deepcopy(shaped.spec)).potential.fitted is fitted
    with pytest.raises(ArgumentError, match="The spec of this environment cannot be written"):
        shaped.spec.to_json()


def test_an_interrupted_fit_goes_on_with_the_same_encoder_only(images, fitted, tmp_path):
    class Stop(Exception):
        pass

    def stop(done, total, what):
        if done > 0.5 * total:
            raise Stop

    with pytest.raises(Stop):
        cs.fit_ceilings(images, observe=place_of, folder=tmp_path / "run", progress=stop, **OPTIONS)
    with pytest.raises(FileError, match="another logs"):
        cs.fit_ceilings(images, observe=lambda seen: -place_of(seen), folder=tmp_path / "run", **OPTIONS)
    found = cs.fit_ceilings(images, observe=place_of, folder=tmp_path / "run", **OPTIONS)
    assert (found(image_of(EVERYWHERE)) == fitted(image_of(EVERYWHERE))).all()
