"""What a fit gives: ceilings, floors and best guesses as functions of the observation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_integer
from causal_shaping.data.arrays import BoolArray, FloatArray, checksum_of
from causal_shaping.data.observed import DTYPES, ObservationPotential
from causal_shaping.data.result import DataFrame, Result, json_text
from causal_shaping.data.space import Label, plain
from causal_shaping.errors import ArgumentError, DataError, FileError, MissingExtraError
from causal_shaping.fitted._features import Observe, features_of
from causal_shaping.fitted._forest import Reach, Surface, flat
from causal_shaping.fitted._kernels import look_up
from causal_shaping.fitted._stored import array_of, name_of
from causal_shaping.fitted.diagnostics import Diagnostics
from causal_shaping.fitted.settings import OF_NETWORKS, Settings
from causal_shaping.storage import input_folder, read_arrays, read_json, replacing_together, write_arrays, write_json

DESCRIPTION, ARRAYS = "fitted.json", "fitted.npz"
PLAIN = ("sources", "actions", "columns", "shape", "dtype", "places", "rows", "excess")
"""The attributes of a fit that JSON holds as they are."""

SIDES = {"ceilings": 1.0, "floors": -1.0}
VERSIONS = 2, 3
"""The oldest version of the format that is read, and the one that is written."""

COARSE = "Fits with rewards above 0 are coarse in this version: ceilings may hardly tell neighbouring states apart."

LONG = np.dtype(np.int64)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedCeilings(Result):
    """Fitted ceilings: `fitted(observations)` are the values of the first step.

    Attributes:
        settings: what they were computed with.
        sources: the names of the logs.
        actions: the labels of the actions, in the order of `q_values`.
        columns: the names of the logs' columns that hold the state.
        shape: that of one observation, as the logs hold it.
        dtype: "float32", or "uint8" for bytes.
        surface: values as functions of the observation.
        reach: which observations are near logged ones.
        places: where each kind of values stands in the surface: first column, and how many.
        low: the least of each coordinate in the logs, or of each feature.
        high: the most of each.
        middle: the median of each.
        rows: steps by source.
        excess: how far masses of different sources added to more than 1 where it was worst: sampling error, an
            estimator that is too coarse, or sources that did not watch the same world.
        diagnostics: how far to trust the fit, by held-out episodes.
        observe: from observations to the features that the forest takes; None if it takes the observations.
        path: the folder that it was saved to or loaded from last; None if there is none.
    """

    settings: Settings
    sources: tuple[str, ...]
    actions: tuple[Label, ...]
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    surface: Surface
    reach: Reach
    places: Mapping[str, tuple[int, int]]
    low: FloatArray
    high: FloatArray
    middle: FloatArray
    rows: Mapping[str, int]
    excess: float
    diagnostics: Diagnostics
    observe: Observe | None = None
    path: str | None = None

    WHAT: ClassVar[str] = "ceilings"

    def __call__(self, observations: npt.ArrayLike, h: npt.ArrayLike = 0) -> FloatArray:
        """Return the values of many observations, [n, *shape], at step h, or at one each."""
        return self.values_at(self.coordinates(observations), h, "values")

    def q_values(self, observations: npt.ArrayLike) -> FloatArray:
        """Return the values of all actions in the first step: float64 [n, actions]."""
        seen = self.coordinates(observations)
        beyond = self.reach.excludes(seen)[:, None]
        return np.where(beyond, self._beyond[-1], self.surface.at(seen, *self.places["q_values"]))

    def spread(self, observations: npt.ArrayLike) -> FloatArray:
        """Return the standard deviation of the members' values in the first step: how uncertain the fit is."""
        return self.surface.at(self.coordinates(observations), *self.places["spread"])[:, 0]

    def is_beyond(self, observations: npt.ArrayLike) -> BoolArray:
        """Return which observations lie beyond the logs; their values are vacuous."""
        return self.reach.excludes(self.coordinates(observations))

    def coordinates(self, observations: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return what the forest takes for observations [n, *shape], [n, k]; or say what does not fit."""
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
        return self.encoded(seen.astype(self.dtype, copy=False))

    def encoded(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the features of observations, [n, k]; without `observe` the observations."""
        if self.observe is None:
            return observations
        features = features_of(self.observe, observations)
        if features.shape[1:] != self.low.shape:
            raise ArgumentError(
                f"observe= returned {features.shape[1]} features, but the ceilings were fitted to {len(self.low)}. "
                "Pass the function that they were fitted with."
            )
        return features

    def values_at(self, coordinates: npt.NDArray[Any], h: npt.ArrayLike, kind: str) -> FloatArray:
        """Return "values" or "guess" at step h, or at one each; NaN for what holds NaN, 0 beyond the horizon."""
        seen, reach = flat(coordinates), self.reach
        steps = np.zeros(1, LONG) if self.settings.horizon is None else np.atleast_1d(np.asarray(h, LONG))
        if len(steps) not in (1, len(seen)):  # compiled code does not check
            raise ArgumentError(f"h has {len(steps)} steps for {len(seen)} observations.")
        found = np.empty(len(seen))
        enough = reach.enough if kind == "values" else 0  # a best guess has no reach
        look_up(
            *self.surface.trees, self.surface.means, *self.places[kind], *reach.trees, reach.boxes, enough,
            self._beyond, seen, reach.coordinates(seen), steps, found,
        )  # fmt: skip
        return found

    @cached_property
    def _beyond(self) -> FloatArray:
        """Values beyond the logs, by the steps left: float64 [steps + 1]."""
        settings = self.settings
        steps = (np.inf, np.inf) if settings.horizon is None else range(settings.horizon + 1)
        return np.array([settings.side * settings.vacuous(left) for left in steps])

    def potential(self, kind: str = "ceiling", *, step_indexed: bool = True) -> FittedPotential:
        """Return the potential: the ceilings, or with `kind="mean"` the best guesses.

        Args:
            kind: "ceiling", or "mean" for best guesses: free mass follows the sources' own shares in place of w.
            step_indexed: values by step; otherwise those of the first step at all steps. With an infinite horizon there
                is only one.
        """
        check_choice("kind", kind, ("ceiling", "mean"))
        encoded = self.observe is not None
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
            low=None if encoded else self.low,
            high=None if encoded else self.high,
            columns=self.columns if self.shape == (len(self.columns),) else (),
            path=None if encoded else self.path,  # a spec cannot hold the function
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
            f"{list(self.shape)}, {len(self.actions)} actions, {horizon})"
        )

    def summary(self) -> str:
        """Return what it is, how far to trust it, and what it rests on."""
        assumed = [f"- {one}" for one in self.assumptions]
        return "\n".join([repr(self), self.diagnostics.summary(), "It assumes:", *assumed])

    def to_pandas(self) -> DataFrame:
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
        """Write everything but `observe` to a folder, which `load_potential` opens, too."""
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise FileError(f"{folder} is a file. Give the name of a folder.")
        folder.mkdir(parents=True, exist_ok=True)
        arrays = self._arrays()
        with replacing_together():
            write_arrays(folder / ARRAYS, arrays)
            write_json(folder / DESCRIPTION, self._description(arrays))
        vars(self).update(path=os.fspath(folder))  # for the spec of environments whose reward it shapes

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        parts = {"surface": self.surface.arrays(), "reach": self.reach.arrays()}
        named = {f"{part}_{name}": array for part, held in parts.items() for name, array in held.items()}
        return named | {"low": self.low, "high": self.high, "middle": self.middle}

    def _description(self, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, Any]:
        return {
            "kind": f"fitted {self.WHAT}",
            "version": VERSIONS[1],
            "arrays": _checksum(arrays),
            "settings": self.settings.as_plain(),
            "features": None if self.observe is None else len(self.low),
            "diagnostics": self.diagnostics.as_plain(),
            **{name: getattr(self, name) for name in PLAIN},
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, observe: Observe | None = None) -> Self:
        """Return what `save` wrote, checked against its checksum.

        Args:
            path: the folder.
            observe: the function that the ceilings were fitted with; it is code, and not in the folder.
        """
        folder = input_folder(path)
        held = _described(folder)
        if held.get("kind") != f"fitted {cls.WHAT}":
            raise FileError(f"{folder} holds {held.get('kind')}, not fitted {cls.WHAT}.")
        encoded = held.get("features") is not None
        if encoded and observe is None:
            raise ArgumentError(
                f"{folder} was fitted with observe=, a function, which is not saved. Pass the same function again: "
                f"load_potential({str(folder)!r}, observe=...)."
            )
        if observe is not None and not encoded:
            raise ArgumentError(f"{folder} was fitted without observe=. Load it without.")
        arrays = read_arrays(folder / ARRAYS)
        if held.get("arrays") != _checksum(arrays):
            raise FileError(f"{folder} was changed after it was written: its checksum does not fit its contents.")
        try:
            return cls._of(held, arrays, observe=observe, path=os.fspath(folder))
        except (MissingExtraError, Warning):
            raise
        except Exception as error:  # whatever is wrong inside: it is the folder that is to blame
            why = f"it lacks {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise FileError(f"{folder} is not a complete fit: {why}. Was it changed?") from error

    @classmethod
    def _of(cls, held: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], **more: Any) -> Self:
        """Return a fit from its description and arrays; compiled code runs on them, so that they must fit together."""

        def part(prefix: str) -> dict[str, npt.NDArray[Any]]:
            return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

        sources = tuple(name_of("The source", name) for name in held["sources"])
        actions = tuple(plain(label) for label in held["actions"])
        shape = tuple(check_integer("shape", size, least=1) for size in held["shape"])
        (coordinates,) = shape if held.get("features") is None else (check_integer("features", held["features"]),)
        settings = Settings.from_plain(held["settings"]).checked(sources)
        surface = Surface.from_arrays(part("surface_"), coordinates)
        kinds = ("values", "q_values", "spread") + (("guess", "guess_q_values") if settings.side > 0 else ())
        ranges: dict[str, Any] = {
            name: array_of(arrays, name, np.float64, (coordinates,)) for name in ("low", "high", "middle")
        }
        check_choice("dtype", held["dtype"], DTYPES)
        if settings.side != SIDES[cls.WHAT] or set(held["rows"]) != set(sources):
            raise DataError("settings and sources are not those of one fit")
        return cls(
            settings=settings,
            sources=sources,
            actions=actions,
            columns=tuple(name_of("The column", name) for name in held["columns"]),
            shape=shape,
            dtype=held["dtype"],
            surface=surface,
            reach=Reach.from_arrays(part("reach_"), coordinates),
            places=_places(held["places"], kinds, surface.means.shape[1]),
            **ranges,
            rows=held["rows"],
            excess=held["excess"],
            diagnostics=Diagnostics.from_plain(held["diagnostics"], coarse=settings.coarse),
            **more,
        )


def _places(held: Mapping[str, Any], names: Iterable[str], columns: int) -> dict[str, tuple[int, int]]:
    """Return where each kind of values stands among so many columns of the surface; or say what cannot be."""
    places = dict[str, tuple[int, int]]()
    for name in names:
        first, count = (check_integer(f"the place of {name}", number) for number in held[name])
        if not count or first + count > columns:
            raise DataError(f"{name} stand in {count} columns from {first} on, of {columns}")
        places[name] = first, count
    return places


def _described(folder: Path) -> dict[str, Any]:
    """Return what a folder says of its fit, checked against its checksum."""
    try:
        held = read_json(folder / DESCRIPTION)
    except FileError as error:
        raise FileError(f"{folder} holds no complete fit: {error}") from error
    version = held.get("version")
    if type(version) is not int or not VERSIONS[0] <= version <= VERSIONS[1]:
        raise FileError(f"{folder} was written in format {version}; this package reads {VERSIONS[0]} to {VERSIONS[1]}.")
    if version == 2:  # of version 0.2, which also fitted networks
        settings = held["settings"]
        if held["network"] or settings["estimator"] == "network":
            raise FileError(
                f"{folder} holds a network, which causal-shaping 0.2.0 was the last to read. Fit a forest to the same "
                "logs: causal-shaping fit, or for images fit_ceilings(logs, observe=...) with an encoder of your own."
            )
        held["settings"] = {name: value for name, value in settings.items() if name not in OF_NETWORKS}
    return held


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return a SHA-256 of arrays, their names, types and shapes."""
    names = sorted(arrays)
    kinds = json.dumps([[name, arrays[name].dtype.str, arrays[name].shape] for name in names])
    return checksum_of(kinds, [np.asarray(arrays[name]) for name in names])


class FittedFloors(FittedCeilings):
    """Fitted floors: `fitted(observations)` are the values of the first step; see `FittedCeilings`."""

    WHAT: ClassVar[str] = "floors"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedPotential(ObservationPotential):
    """The potential of a fit."""

    fitted: FittedCeilings

    def values(self, observations: npt.NDArray[Any], h: npt.ArrayLike) -> FloatArray:
        """Return phi of many observations, [n, *shape], at step h or at one each; 0 beyond the horizon."""
        fitted, kind = self.fitted, "guess" if self.kind == "guess" else "values"
        seen = fitted.encoded(np.asarray(observations))
        if seen.shape[1:] != fitted.low.shape:  # compiled code does not check
            self.check_observation(observations[0])
        return fitted.values_at(seen, 0 if self.horizon is None else h, kind)
