"""What a fit gives: ceilings, floors and best guesses as functions of the observation."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_integer
from causal_shaping.data.arrays import BoolArray, FloatArray, IntArray, checksum_of
from causal_shaping.data.observed import DTYPES, ObservationPotential
from causal_shaping.data.result import Result, json_text
from causal_shaping.data.space import Label, plain
from causal_shaping.errors import ArgumentError, DataError, FileError, MissingExtraError
from causal_shaping.fitted._forest import NO_TREES, Reach, Surface, joined
from causal_shaping.fitted._kernels import Lookup, look_up, look_up_all, pack
from causal_shaping.fitted._network import NetworkSurface, load_network, save_network
from causal_shaping.fitted._stored import array_of, finite, name_of
from causal_shaping.fitted.diagnostics import Diagnostics
from causal_shaping.fitted.settings import Settings
from causal_shaping.io.files import replacing_together, write_arrays, write_json
from causal_shaping.io.inputs import input_folder, read_arrays, read_json

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTION, ARRAYS, NETWORK = "fitted.json", "fitted.npz", "network.safetensors"
SIDES = {"ceilings": 1.0, "floors": -1.0}
VERSION = 2
"""The version of the format."""

COARSE = "Fits with rewards above 0 are coarse in this version: ceilings may hardly tell neighbouring states apart."

REAL, LONG, FIRST_STEP = np.dtype(np.float32), np.dtype(np.int64), np.zeros(1, dtype=np.int64)
"""What potentials need in each step, made once."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedCeilings(Result):
    """Fitted ceilings: `fitted(observations)` are the values of the first step.

    Attributes:
        settings: what they were computed with.
        sources: the names of the logs.
        actions: the labels of the actions, in the order of `q_values`.
        columns: the names of the coordinates.
        shape: that of one observation.
        dtype: "float32", or "uint8" for images.
        surface: values as functions of the observation.
        reach: which observations are near logged ones.
        places: where each kind of values stands in the surface: first column, and how many.
        low: the least of each coordinate in the logs.
        high: the most of each coordinate in the logs.
        middle: the median of each coordinate in the logs.
        rows: steps by source.
        excess: how far masses of different sources added to more than 1 where it was worst: sampling error, an
            estimator that is too coarse, or sources that did not watch the same world.
        diagnostics: how far to trust the fit, by held-out episodes.
        path: the folder that it was saved to or loaded from last; None if there is none.
    """

    settings: Settings
    sources: tuple[str, ...]
    actions: tuple[Label, ...]
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    surface: Surface | NetworkSurface
    reach: Reach
    places: Mapping[str, tuple[int, int]]
    low: FloatArray
    high: FloatArray
    middle: FloatArray
    rows: Mapping[str, int]
    excess: float
    diagnostics: Diagnostics
    path: str | None = None

    WHAT: ClassVar[str] = "ceilings"

    def __call__(self, observations: npt.ArrayLike, h: npt.ArrayLike = 0) -> FloatArray:
        """Return the values of many observations, [n, *shape], at step h, or at one each."""
        seen = self.checked(observations)
        return self.values_of(seen, h, "values")

    def q_values(self, observations: npt.ArrayLike) -> FloatArray:
        """Return the values of all actions in the first step: float64 [n, actions]."""
        seen = self.checked(observations)
        first, count = self.places["q_values"]
        found = np.stack([self.surface.at(seen, first + x) for x in range(count)], axis=1)
        return _finite(np.where(self.reach.excludes(seen)[:, None], self._vacuous(0), found), seen)

    def spread(self, observations: npt.ArrayLike) -> FloatArray:
        """Return the standard deviation of the members' values in the first step: how uncertain the fit is."""
        seen = self.checked(observations)
        return _finite(self.surface.at(seen, self.places["spread"][0]), seen)

    def is_beyond(self, observations: npt.ArrayLike) -> BoolArray:
        """Return which observations lie beyond the logs; their values are vacuous."""
        return self.reach.excludes(self.checked(observations))

    def values_of(self, observations: npt.NDArray[Any], h: npt.ArrayLike, kind: str) -> FloatArray:
        """Return "values" or "guess" of observations that fit, without checks."""
        first, count = self.places[kind]
        horizon = self.settings.horizon
        left = np.asarray(count) if horizon is None else horizon - np.asarray(h, dtype=np.int64)
        found = self.surface.at(observations, first - 1 + np.minimum(np.maximum(left, 1), count))
        if kind == "values":
            beyond = self.reach.excludes(observations)
            if beyond.any():
                steps = np.broadcast_to(h, beyond.shape)[beyond]
                found[beyond] = [self._vacuous(int(step)) for step in steps]
        _finite(found, observations)
        return found if horizon is None else np.where(left > 0, found, 0.0)

    def lookup(self, kind: str) -> IntArray | None:
        """Return what `look_up` needs to find what `values_of` gives; None if there is more to it than trees."""
        if isinstance(self.surface, NetworkSurface) or self.reach.projection is not None:
            return None
        first, count = self.places[kind]
        trees, tests = self.surface.trees, self.reach.trees if kind == "values" else NO_TREES
        return pack(
            Lookup(
                trees=trees.roots,
                tests=tests.roots,
                enough=self.reach.enough if tests.roots else 0,
                nodes=joined(trees, tests).nodes,
                values=self.surface.means[:, first : first + count],
                boxes=self.reach.boxes,
                beyond=np.array([self._vacuous(h) for h in range(self.settings.horizon or count, -1, -1)]),
            )
        )

    def _vacuous(self, h: int) -> float:
        horizon = self.settings.horizon
        left = np.inf if horizon is None else max(horizon - h, 0)
        return self.settings.side * self.settings.vacuous(left)

    def checked(self, observations: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return observations as an array [n, *shape]; or say what does not fit."""
        seen = np.asarray(observations)
        if seen.shape[1:] != self.shape or seen.ndim != len(self.shape) + 1:
            raise ArgumentError(
                f"Observations have shape {seen.shape}; they must be [n, {', '.join(map(str, self.shape))}]: "
                f"{', '.join(self.columns)}."
            )
        if self.dtype == "uint8" and seen.dtype != np.uint8:
            raise ArgumentError(f"Observations are {seen.dtype}, but the logs held uint8, from 0 to 255.")
        if seen.dtype.kind not in "biuf" or not np.isfinite(seen).all():
            raise DataError("Observations must be finite numbers.")
        return seen.astype(self.dtype, copy=False)

    def potential(self, kind: str = "ceiling", *, step_indexed: bool = True) -> FittedPotential:
        """Return the potential: the ceilings, or with `kind="mean"` the best guesses.

        Args:
            kind: "ceiling", or "mean" for best guesses: free mass follows the sources' own shares in place of w.
            step_indexed: values by step; otherwise those of the first step at all steps. With an infinite horizon there
                is only one.
        """
        check_choice("kind", kind, ("ceiling", "mean"))
        return FittedPotential(
            shape=self.shape,
            dtype=self.dtype,
            discount=self.settings.discount,
            horizon=self.settings.horizon if step_indexed else None,
            actions=self.actions,
            origin=f"{'ceilings' if kind == 'ceiling' else 'best guesses'} fitted to {', '.join(self.sources)}",
            assumptions=self.assumptions if kind == "ceiling" else (),
            kind="ceiling" if kind == "ceiling" else "guess",
            reward_max=self.settings.reward_bound,
            low=self.low,
            high=self.high,
            columns=self.columns if self.shape == (len(self.columns),) else (),
            path=self.path,
            fitted=self,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the ceilings rest on, in sentences."""
        settings = self.settings
        most = "exceed" if settings.side > 0 else "fall below"
        worth = {
            "observed": f"Mass that no source proves is worth no more than what followed the state in some source, at "
            f"the expectile {settings.expectile:g}.",
            "observed-action": f"Mass that no source proves is worth no more than what followed the state after the "
            f"action in some source, at the expectile {settings.expectile:g}.",
            "any": "Mass that no source proves may be worth anything.",
        }[settings.support]
        gammas = [f"{name}: {settings.gammas(self.sources)[i]:g}" for i, name in enumerate(self.sources)]
        return (
            *((COARSE,) if settings.coarse else ()),
            "This is a fit, not a bound: nothing is guaranteed. For exact shares it would hold under what follows.",
            f"Rewards never {most} {settings.reward_bound:g}.",
            "All sources and the world that the agent acts in are the same; no other actions exist.",
            "Hidden causes are drawn afresh at each step, and what happens does not depend on the step.",
            f"Confounding (Gamma): {', '.join(gammas)}.",
            worth,
            f"An action that a source takes with a share of {settings.rarest_action:g} or less is not known from it.",
        )

    def __repr__(self) -> str:
        horizon = "infinite horizon" if self.settings.horizon is None else f"{self.settings.horizon} steps"
        return (
            f"{type(self).__name__}({', '.join(self.sources)}: {sum(self.rows.values()):,} rows, observations "
            f"{list(self.shape)}, {len(self.actions)} actions, {horizon}, {self.settings.estimator})"
        )

    def summary(self) -> str:
        """Return what it is, how far to trust it, and what it rests on."""
        assumed = [f"- {one}" for one in self.assumptions]
        return "\n".join([repr(self), self.diagnostics.summary(), "It assumes:", *assumed])

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per coordinate: its name, and its range in the logs."""
        return self.potential().to_pandas()

    def to_json(self) -> str:
        """Return what it is, how far to trust it, and what it rests on, as JSON."""
        return json_text(
            {
                "kind": f"fitted {self.WHAT}",
                "settings": self.settings.as_plain(),
                "rows": self.rows,
                "columns": self.columns,
                "shape": self.shape,
                "actions": self.actions,
                "low": self.low,
                "high": self.high,
                "verdict": self.diagnostics.verdict,
                "diagnostics": self.diagnostics.as_plain(),
                "assumptions": self.assumptions,
            }
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a folder, which `load_potential` opens, too.

        `fitted.json`, arrays in `fitted.npz`, and the weights of a network in `network.safetensors`.
        """
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise FileError(f"{folder} is a file. Give the name of a folder.")
        folder.mkdir(parents=True, exist_ok=True)
        arrays = self._arrays()
        weights = {name: arrays[name] for name in arrays if name.startswith("surface_")}
        if not isinstance(self.surface, NetworkSurface):
            weights = {}
        with replacing_together():
            if weights:
                save_network(folder / NETWORK, weights)
            write_arrays(folder / ARRAYS, {name: arrays[name] for name in arrays if name not in weights})
            write_json(folder / DESCRIPTION, self._description(arrays))
        vars(self).update(path=os.fspath(folder))  # for the spec of environments whose reward it shapes

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        parts = {"surface": self.surface.arrays(), "reach": self.reach.arrays()}
        named = {f"{part}_{name}": array for part, held in parts.items() for name, array in held.items()}
        return named | {"low": self.low, "high": self.high, "middle": self.middle}

    def _description(self, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
        return {
            "kind": f"fitted {self.WHAT}",
            "version": VERSION,
            "arrays": _checksum(arrays),
            "settings": self.settings.as_plain(),
            "sources": list(self.sources),
            "actions": list(self.actions),
            "columns": list(self.columns),
            "shape": list(self.shape),
            "dtype": self.dtype,
            "places": {name: list(place) for name, place in self.places.items()},
            "network": isinstance(self.surface, NetworkSurface),
            "rows": dict(self.rows),
            "excess": self.excess,
            "diagnostics": self.diagnostics.as_plain(),
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what `save` wrote, checked against its checksum.

        It is also checked that everything fits together, since compiled code runs on it.
        """
        folder = input_folder(path)
        held = _described(folder)
        if held.get("kind") != f"fitted {cls.WHAT}":
            raise FileError(f"{folder} holds {held.get('kind')}, not fitted {cls.WHAT}.")
        arrays = read_arrays(folder / ARRAYS)
        if held.get("network"):
            arrays |= load_network(folder / NETWORK)
        if held.get("arrays") != _checksum(arrays):
            raise FileError(f"{folder} was changed after it was written: its checksum does not fit its contents.")

        def part(prefix: str) -> dict[str, npt.NDArray[Any]]:
            return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

        try:
            sources = tuple(name_of("The source", name) for name in held["sources"])
            actions = tuple(plain(label) for label in held["actions"])
            shape = tuple(check_integer("shape", size, least=1) for size in held["shape"])
            settings = Settings.from_plain(held["settings"]).checked(sources)
            places, columns = _places(held["places"], cls.WHAT, settings.horizon, len(actions))
            check_choice("dtype", held["dtype"], DTYPES)
            if settings.side != SIDES[cls.WHAT] or set(held["rows"]) != set(sources) or len(shape) not in (1, 3):
                raise DataError("settings, sources and shape are not those of one fit")
            return cls(
                settings=settings,
                sources=sources,
                actions=actions,
                columns=tuple(name_of("The column", name) for name in held["columns"]),
                shape=shape,
                dtype=held["dtype"],
                surface=(NetworkSurface if held["network"] else Surface).from_arrays(part("surface_"), shape, columns),
                reach=Reach.from_arrays(part("reach_"), shape),
                places=places,
                low=array_of(arrays, "low", np.float64, shape),
                high=array_of(arrays, "high", np.float64, shape),
                middle=array_of(arrays, "middle", np.float64, shape),
                rows={name: check_integer("rows", count) for name, count in held["rows"].items()},
                excess=finite(held["excess"]),
                diagnostics=Diagnostics.from_plain(held["diagnostics"], coarse=settings.coarse),
                path=os.fspath(folder),
            )
        except (MissingExtraError, Warning):
            raise
        except Exception as error:  # whatever is wrong inside: it is the folder that is to blame
            why = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise FileError(f"{folder} is not a complete fit: {why}. Was it changed?") from error


def _places(
    held: Mapping[str, Any], what: str, horizon: int | None, actions: int
) -> tuple[dict[str, tuple[int, int]], int]:
    """Return where each kind of values stands in the surface, one after another, and how many columns that makes."""
    most = 1 if horizon is None else horizon
    sizes = {"values": most, "q_values": actions, "spread": 1}
    sizes |= {"guess": most, "guess_q_values": actions} if what == FittedCeilings.WHAT else {}
    places, end = dict[str, tuple[int, int]](), 0
    for name, most in sizes.items():
        first, count = (check_integer(f"the place of {name}", number) for number in held[name])
        fits = 1 <= count <= most if name in ("values", "guess") else count == most
        if first != end or not fits:
            raise DataError(f"{name} stand in {count} columns from {first} on, which cannot be")
        places[name], end = (first, count), first + count
    return places, end


def _finite(found: FloatArray, observations: npt.NDArray[Any]) -> FloatArray:
    """Return values, one or a row for each observation; refuse those of a network whose weights are beyond measure."""
    if not np.isfinite(found).all():
        sound = np.isfinite(observations).reshape(len(observations), -1).all(axis=1)
        if not np.isfinite(found[sound]).all():
            raise DataError("The fit gives no finite value for an observation: its weights are too large. Fit again.")
    return found


def _described(folder: Path) -> dict[str, Any]:
    """Return what a folder says of its fit."""
    try:
        held = read_json(folder / DESCRIPTION)
    except FileError as error:
        raise FileError(f"{folder} holds no complete fit: {error}") from error
    if held.get("version") != VERSION:
        raise FileError(
            f"{folder} was written in format {held.get('version')}; this package reads {VERSION}. Fit again."
        )
    return held


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a SHA-256 of arrays, their names, types and shapes: it binds them to their description."""
    names = sorted(arrays)
    kinds: list[Any] = [[name, arrays[name].dtype.str, arrays[name].shape] for name in names]
    return checksum_of(json.dumps(kinds), [np.asarray(arrays[name]) for name in names])


class FittedFloors(FittedCeilings):
    """Fitted floors: `fitted(observations)` are the values of the first step; see `FittedCeilings`."""

    WHAT: ClassVar[str] = "floors"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedPotential(ObservationPotential):
    """The potential of a fit."""

    fitted: FittedCeilings

    @property
    def costly(self) -> bool:
        """Whether to evaluate it takes long: the many numbers of an image do, a vector takes a few microseconds."""
        return len(self.shape) > 1

    def values(self, observations: npt.NDArray[Any], h: npt.ArrayLike) -> FloatArray:
        """Return phi of many observations, [n, *shape], at step h or at one each; 0 beyond the horizon."""
        if self._lookup is None:
            return self.fitted.values_of(np.asarray(observations), 0 if self.horizon is None else h, self._kind)
        steps = FIRST_STEP if self.horizon is None else np.atleast_1d(np.asarray(h, LONG))
        seen, found = np.ascontiguousarray(observations, REAL), np.empty(len(observations))
        if seen.ndim != 2 or not look_up_all(self._lookup, seen, steps, found):
            self.check_observation(seen[0])
        return found

    def value(self, observation: npt.NDArray[Any], h: int) -> float:
        """Return phi of one observation at step h; of a vector in a microsecond or two."""
        lookup = self._lookup
        if lookup is None:
            return super().value(observation, h)
        found = look_up(lookup, np.ascontiguousarray(observation, REAL), 0 if self.horizon is None else h)
        if found != found:
            self.check_observation(observation)
        return found  # type: ignore[no-any-return]

    @property
    def _kind(self) -> str:
        return "guess" if self.kind == "guess" else "values"

    @cached_property
    def _lookup(self) -> IntArray | None:
        return self.fitted.lookup(self._kind)
