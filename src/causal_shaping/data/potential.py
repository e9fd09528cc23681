"""The potential: phi_h(s), what shapes the reward.

- `Potential`: a value per state, or per step and state, for labels and for live observations.

Shaping adds discount * phi_{h+1}(s') - phi_h(s) to a reward, with phi = 0 after termination, and
with a step-indexed potential phi_{H+1} = 0. Whatever phi is, it does not change the optimal
policies of an agent that maximises what the rule at the time limit assumes (see `ShapeReward`); it
changes how fast they are learned.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_choice, check_discount, check_finite, check_integer
from causal_shaping.data.arrays import FloatArray, LongArray, checksum_of, frozen
from causal_shaping.data.result import Result, SavedByState
from causal_shaping.data.space import UNKNOWN, Space
from causal_shaping.data.successors import AllowedSuccessors
from causal_shaping.errors import ArgumentError, DataError, ShapingWarning, UnknownNameError

KINDS = ("ceiling", "guess", "other")
"""What a potential claims: an upper bound of optimal values, a best guess of them, or nothing."""

CLAIMS = ("kind", "reward_min", "reward_max", "successors", "episode_steps")
"""The attributes of a potential that say what it claims."""

UNSEEN = UNKNOWN
"""The position of a state that the potential does not know: the last column of its table."""


@dataclass(frozen=True, eq=False, repr=False)
class Potential(SavedByState, Result):
    """A potential: `phi(state, h)` for a label, `phi.at(positions, h)` for many at once.

    Attributes:
        space: the states and actions.
        values: float64 [states], or [steps, states], h = 0 the first step. 0 in states that are
            declared terminal.
        discount: the factor on future reward that it was made for.
        unseen: the potential of a state that the space does not hold: float64 like `values` without
            states, by default the largest value of the step, so that an unknown state looks as good
            as any; NaN makes it an error.
        origin: where it comes from, in words.
        assumptions: the assumptions that it rests on, in sentences.
        kind: "ceiling", an upper bound of the optimal values, which `ShapeReward` tests while an
            agent acts; "guess", a best guess of them; "other", anything else.
        reward_min: the least that a step can pay; None if it was not declared.
        reward_max: the most that a step can pay; None if it was not declared.
        successors: of a ceiling, what it takes to be possible after a state and action; None if it
            excludes nothing.
        episode_steps: of a ceiling, None if no step is worth more than it says: phi_h(s) >=
            E[r + discount * phi_{h+1}(s')] for every action. A number if it only bounds the return
            of so many steps from the first state on, as the first step's ceiling without step index
            does; 0 if it does not bound returns either.

    Examples:
        >>> phi = Potential([0.0, 1.0], Space(["a", "b"], ["go"]))
        >>> phi("b"), phi.at([0, 1, -1]).tolist()
        (1.0, [0.0, 1.0, 1.0])
    """

    KIND = "potential"

    values: FloatArray
    space: Space
    _: KW_ONLY
    discount: float = 1.0
    unseen: FloatArray | float | None = None
    origin: str = "given"
    assumptions: tuple[str, ...] = ()
    kind: str = "other"
    reward_min: float | None = None
    reward_max: float | None = None
    successors: AllowedSuccessors | None = None
    episode_steps: int | None = None

    def __post_init__(self) -> None:
        space = _space_of(self.space)
        values = frozen(self.values, np.float64, "The potential")
        if values.ndim not in (1, 2) or values.shape[-1] != len(space.states) or not values.size:
            raise ArgumentError(
                f"The potential has shape {values.shape}; it must be [states] or [steps, states] "
                f"with {len(space.states)} states."
            )
        if not np.isfinite(values).all():
            *step, state = np.argwhere(~np.isfinite(values))[0].tolist()
            where = " at step ".join(map(str, [repr(space.states[state]), *step]))
            number = values[(*step, state)]
            raise ArgumentError(
                f"The potential of {where} is {number}; it must be a finite number."
            )
        check_claims(self)
        if self.successors is not None and self.successors.row.shape != space.is_admissible.shape:
            raise ArgumentError(
                "successors must have a row for each state and action of the space."
            )
        values = frozen(np.where(space.is_terminal, 0.0, values), np.float64)
        unseen = self._unseen(values[..., ~space.is_terminal])
        vars(self).update(space=space, values=values, unseen=frozen(unseen, np.float64, "unseen"))
        vars(self).update(discount=float(self.discount), assumptions=tuple(self.assumptions))

    def _unseen(self, lasting: FloatArray) -> npt.NDArray[Any]:
        """Return the value of unseen states at each step, by default the largest of the step.

        Args:
            lasting: the values of the states that do not end an episode.
        """
        if self.unseen is None:
            if not lasting.size:
                return np.zeros(lasting.shape[:-1])
            return np.asarray(lasting.max(axis=-1))
        try:
            unseen = np.broadcast_to(np.asarray(self.unseen), lasting.shape[:-1])
        except ValueError:
            shape = lasting.shape[:-1]
            raise ArgumentError(f"unseen must be one number, or one per step: {shape}.") from None
        if np.isinf(unseen).any():
            raise ArgumentError("unseen must be finite, or NaN to make unseen states an error.")
        return unseen

    @classmethod
    def zero(cls, where: Any, *, discount: float = 1.0) -> Self:
        """Return the potential of 0, which changes no reward, for a space or what has one."""
        space = _space_of(where)
        zeros = np.zeros(len(space.states))
        return cls(zeros, space, discount=discount, unseen=0.0, origin="zero")

    @property
    def step_indexed(self) -> bool:
        """Whether it has a value for each step."""
        return self.values.ndim == 2

    @property
    def horizon(self) -> int | None:
        """The number of steps of a step-indexed potential, None for one without."""
        return len(self.values) if self.step_indexed else None

    def shifted(self, shift: float) -> Self:
        """Return the potential plus a constant; terminal states stay at 0.

        A ceiling that is lowered is no ceiling.
        """
        check_finite("shift", shift)
        assert self.unseen is not None
        kind = "other" if self.kind == "ceiling" and shift < 0 else self.kind
        return replace(self, values=self.values + shift, unseen=self.unseen + shift, kind=kind)

    def position(self, observation: Any) -> int:
        """Return a live observation's position in `values`, or `UNSEEN`; numbers are binned."""
        return self.space.find(self.space.label(observation))

    def match(self, space: Space, stacklevel: int = 2) -> LongArray:
        """Return the positions of an environment's states in `values`; warn of unknown states.

        Raises:
            ArgumentError: if it knows none of them, or its states are made of other columns.
        """
        positions, lasting = self.space.find_all(space), ~space.is_terminal
        unknown = lasting & (positions == UNSEEN)
        if self.space.columns != space.columns or unknown[lasting].all():
            both = f"it has {self.space!r}, the environment {space!r}"
            raise ArgumentError(f"The potential is of other states: {both}.")
        if unknown.any():
            warnings.warn(
                f"The potential does not know {unknown.sum()} of the environment's states, such as "
                f"{space.states[int(np.argmax(unknown))]}; they get its value for unseen states.",
                ShapingWarning,
                stacklevel=stacklevel + 1,
            )
        return positions

    @cached_property
    def _table(self) -> FloatArray:
        """The values with unseen states at the end, and behind the last step one of zeros."""
        table = np.concatenate([self.values, np.asarray(self.unseen)[..., None]], axis=-1)
        if not self.step_indexed:
            return table
        return np.concatenate([table, np.zeros((1, table.shape[1]))])

    def rows(self) -> list[list[float]]:
        """Return the values as lists, unseen states last.

        A row per step and one of zeros; without steps one row.
        """
        return np.atleast_2d(self._table).tolist()  # type: ignore[no-any-return]

    def at(self, positions: npt.ArrayLike, h: npt.ArrayLike = 0) -> FloatArray:
        """Return the potential of many states, by position, at one step or one each.

        Beyond the horizon it is 0.
        """
        place: tuple[Any, ...] = (np.asarray(positions),)
        if self.step_indexed:
            place = np.minimum(np.asarray(h), len(self._table) - 1), *place
        result = self._table[place]
        if np.isnan(result).any():
            raise UnknownNameError(
                "The potential does not know a state of the agent, and has no value for unseen "
                "states."
            )
        return np.asarray(result)

    def __call__(self, state: Any, h: int = 0) -> float:
        """Return phi_h of a state, by label."""
        return float(self.at(self.space.find(state), check_integer("h", h)))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the values, as the column `potential` of a table."""
        return {"potential": self.values}

    @property
    def metadata(self) -> dict[str, Any]:
        """Everything but the values and the space, as plain values for JSON."""
        unseen = np.ravel(np.asarray(self.unseen)).astype(object)
        unseen[np.ravel(np.isnan(np.asarray(self.unseen)))] = None
        about = {
            "discount": self.discount,
            "unseen": unseen.tolist(),
            "origin": self.origin,
            "assumptions": list(self.assumptions),
        }
        if self.kind == "other":  # written as before potentials had a kind
            return about
        claims = {name: getattr(self, name) for name in CLAIMS}
        claims["successors"] = self.successors and self.successors.as_plain()
        return about | {"claims": claims}

    @cached_property
    def checksum(self) -> str:
        """A SHA-256 of the values, the space and the metadata."""
        about = json.dumps([self.metadata, self.space.to_json()], sort_keys=True)
        return checksum_of(about, [self.values])

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Any], space: Space, metadata: Mapping[str, Any]
    ) -> Self:
        """Return a potential from its `columns`, space and `metadata`."""
        values = columns["potential"]
        unseen = np.array(metadata["unseen"], dtype=np.float64)  # None becomes NaN
        more = {name: metadata[name] for name in ("discount", "origin", "assumptions")}
        claims = dict(metadata.get("claims", {}))
        if claims.get("successors"):
            claims["successors"] = AllowedSuccessors.from_plain(claims["successors"])
        return cls(values, space, unseen=unseen.reshape(values.shape[:-1]), **more, **claims)

    def to_json(self) -> str:
        """Return all of the potential as JSON, for the spec of an environment."""
        space = json.loads(self.space.to_json())
        return json.dumps({"values": self.values.tolist(), "space": space, **self.metadata})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the potential that `to_json` wrote."""
        try:
            about = json.loads(text)
            columns = {"potential": np.array(about["values"], np.float64)}
            return cls.from_columns(columns, Space.from_plain(about["space"]), about)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"This is not the JSON of a potential: {error!r}.") from error

    def __repr__(self) -> str:
        steps = f"{self.horizon} steps, " * self.step_indexed
        return (
            f"Potential({self.origin}: {steps}{len(self.space.states)} states, from "
            f"{self.values.min():.4g} to {self.values.max():.4g}, discount {self.discount:g})"
        )

    def summary(self) -> str:
        """Return what it is and what it rests on, in a few lines."""
        unseen, known = np.asarray(self.unseen), "make an error"
        if not np.isnan(unseen).any():
            known = f"get up to {unseen.max():.4g}"
        return with_assumptions(self, f"States that it does not know {known}.")


def check_claims(potential: Any) -> None:
    """Refuse a discount, kind or reward bound that no potential, of whatever states, can have."""
    check_discount(potential.discount)
    check_choice("kind", potential.kind, KINDS)
    for name in ("reward_min", "reward_max"):
        if getattr(potential, name) is not None:
            check_finite(name, getattr(potential, name))


def with_assumptions(potential: Any, *lines: str) -> str:
    """Return what a potential is, further lines, and the assumptions that it rests on."""
    assumed = ["It assumes:", *(f"- {one}" for one in potential.assumptions)]
    return "\n".join([repr(potential), *lines, *assumed * bool(potential.assumptions)])


def _space_of(where: Any) -> Space:
    space = getattr(where, "space", where)
    if not isinstance(space, Space):
        what = f"{where!r} does not"
        raise ArgumentError(f"A potential needs a space, or something that has one; {what}.")
    return space
