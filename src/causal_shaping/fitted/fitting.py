"""Ceilings from logs whose states cannot be listed.

- `fit_ceilings`, `fit_floors`: from logs to a function of the observation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from causal_shaping._progress import Progress, no_progress, part_of
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.fitted._forest import Partition, Reach, Surface, flat
from causal_shaping.fitted._held_out import Scores, score
from causal_shaping.fitted._members import check_rewards, held_out, kept_at, seen_by, some_of
from causal_shaping.fitted._network import Network, NetworkSurface
from causal_shaping.fitted._resume import Begun
from causal_shaping.fitted._steps import Estimator, Swept, rule_of, sweep
from causal_shaping.fitted._torch import Body, Processes, together
from causal_shaping.fitted.diagnostics import diagnostics_of, share_left
from causal_shaping.fitted.results import FittedCeilings, FittedFloors
from causal_shaping.fitted.settings import Settings
from causal_shaping.logs.counting import Item
from causal_shaping.logs.transitions import read_transitions

SURFACE_LEAF = 5
"""Distinct observations in a leaf of the surface that keeps the values; 1 where observations repeat."""

LEAF = 60
"""Rows in a leaf by default; where observations repeat, so many of each on average make each a cell of its own."""

MEMBERS = {"forest": 3, "network": 1}
"""How many are fitted by default: a network takes longer than three forests."""

MOST_BYTES = 2**29
"""Observations that are looked at together take at most so much memory: images are large."""


Fitted = TypeVar("Fitted", bound=FittedCeilings)


def fit_ceilings(
    logs: Item | Iterable[Item] | Transitions,
    *,
    reward_max: float,
    horizon: int | None = None,
    discount: float = 1.0,
    support: str = "observed",
    confounding: Mapping[str, float] | float = math.inf,
    estimator: str | None = None,
    expectile: float = 0.99,
    atoms: int = 51,
    rarest_action: float = 0.001,
    least_rows: float = 1.0,
    trees: int = 8,
    leaf: int | None = None,
    network: Body | None = None,
    hidden: int = 128,
    layers: int = 2,
    first_gradient_steps: int = 2000,
    gradient_steps: int = 300,
    batch: int = 1024,
    rate: float = 0.005,
    threads: int = 1,
    sample: int = 100_000,
    kept: int = 50_000,
    most_rows: int = 1_000_000,
    members: int | None = None,
    quantile: float = 0.9,
    held_out: float = 0.1,
    settled: float = 1e-3,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    save: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
    **columns: Any,
) -> FittedCeilings:
    """Fit ceilings of the optimal value to logs whose states are vectors of real numbers, or images.

    Needs the extra `fitted`, and for networks also `deep`. A GPU is used if there is one; under torchrun processes
    share the work, and each gets the whole result: that of one, but for rounding.

    An estimator per source maps an observation to shares P_i(x, z | s) of (action, value): the value is the reward plus
    the ceiling of the next state, split between neighbouring atoms so that its mean stays. Then

        Qbar(s, x) = sum over z of max_i P_i(x, z | s) * z + (1 - sum of max_i P_i(x, z | s)) * w(s),

    For exact shares and a w that nothing exceeds this is a bound, and no larger than the same with one source. A fit is
    not exact: a fitted ceiling carries no guarantee, and `diagnostics` say how far to trust it.

    Args:
        logs: whatever `count` takes: files, tables, data frames, Minari data sets, `Logs`; one or several.
        reward_max: the most that a step can pay.
        horizon: the steps of an episode of the agent. None for an infinite horizon, with a discount below 1.
        discount: the factor on future reward.
        support: what free mass, of which the logs say nothing, can be worth: "observed", what followed the state in
            some source; "observed-action", what followed the state after the action; "any", the best reward and then
            the best that the steps left can pay.
        confounding: Gamma, one for all sources or by source; inf is the worst case, 1 a randomised trial.
        estimator: "forest" or "network"; by default a forest for vectors and a network for images.
        expectile: the level of w, an expectile of the values that followed the state, the largest over sources: 1 takes
            the largest that was seen, 0.5 the mean. In a windy field 0.99 was the lowest with nearly no state below the
            optimum.
        atoms: values that are distinguished. More cost time, and change little beyond 41.
        rarest_action: an action with a smaller share in every source counts as never taken, and may do anything.
        least_rows: a source with fewer rows in a leaf, on average over trees, shows nothing there; with a network, one
            whose share of the rows there is below least_rows / leaf.
        trees: trees in a forest.
        leaf: rows in a leaf, of all sources. Fewer fit finer and noisier; 1 makes each distinct observation its own
            cell, as in a table. By default 60; a forest takes 1 where observations repeat so often on average.
        network: layers of your own, in place of fully connected ones for vectors and convolutions for images: a
            callable that takes the shape of one input, and the number of features to return, and gives a
            `torch.nn.Module`. Its inputs are normalised coordinates [n, coordinates], or images [n, channels, rows,
            columns].
        hidden: features of each layer of a network.
        layers: fully connected layers of a network, before the heads of each source.
        first_gradient_steps: gradient steps (Adam) of a network's first fit.
        gradient_steps: those of each later fit, which starts from the weights of the last.
        batch: rows in a gradient step, equally many of each source.
        rate: the learning rate at the beginning of a fit; it falls to 0 until its end.
        threads: threads that a network is computed with. The caller's number holds again afterwards.
        sample: rows that the structure of a tree is grown on.
        kept: observations at which values are kept; values elsewhere are those around.
        most_rows: rows that a member sees; of larger logs it sees some episodes, the same share of each source's. It
            bounds memory, about 300 bytes a row and the observations themselves, and time.
        members: forests or networks, each from its own seed and a random half of the episodes of each source; a single
            one sees all of them. By default 3 forests, or 1 network: one takes minutes.
        quantile: the ceiling is this quantile of the members' ceilings, of three nearly the largest. With 0.75 twice as
            many states were below the optimum in windy fields.
        held_out: the share of each source's episodes that are kept for `diagnostics`.
        settled: a pass ends early when a step changes no value by more than this share of their range.
        seed: the seed of everything; equal seeds give equal results.
        folder: where to keep what is done; the same call goes on there after an interruption, and removes it in the
            end. None keeps nothing.
        save: the folder to save the result to, before what was kept is removed; see `FittedCeilings.save`.
        progress: called with how much is done, of how much, and what is being worked on.
        columns: what the logs call their columns, `state=["x", "y"]`, `action=`, `skip_bad_episodes=`, ...: see
            `read_transitions`.

    Examples:
        >>> import causal_shaping as cs
        >>> world = cs.load_world("windy-field")
        >>> logs = [world.collect(name, 2000, seed=0) for name in world.demonstrators]
        >>> fitted = cs.fit_ceilings(logs, state=["x", "y"], horizon=20, reward_max=-0.1, members=1)
        >>> fitted([[6.0, 6.0], [1.0, 1.0]]).round(1)
        array([-0.1, -0.7])
    """
    given = dict(locals())
    names = Settings.__dataclass_fields__.keys() & given.keys()
    return _fit(FittedCeilings, {name: given[name] for name in names} | {"reward_bound": reward_max}, given)


def fit_floors(logs: Item | Iterable[Item] | Transitions, *, reward_min: float, **options: Any) -> FittedFloors:
    """Fit floors of the optimal value: the mirror image of `fit_ceilings`, with the worst allowed case for free mass.

    Args:
        logs: see `fit_ceilings`.
        reward_min: the least that a step can pay.
        options: the other arguments of `fit_ceilings`.
    """
    names = options.keys() & Settings.__dataclass_fields__.keys()
    chosen = {name: options.pop(name) for name in names} | {"reward_bound": reward_min, "side": -1.0}
    given = {"folder": None, "save": None, "progress": no_progress, "logs": logs} | {
        name: options.pop(name) for name in ("folder", "save", "progress") if name in options
    }
    return _fit(FittedFloors, chosen, given | {"columns": options})


def _fit(kind: type[Fitted], chosen: dict[str, Any], given: dict[str, Any]) -> Fitted:
    progress: Progress = given["progress"]
    rows = given["logs"]
    if not isinstance(rows, Transitions):
        rows = read_transitions(rows, **given["columns"], progress=part_of(progress, 0.0, 0.05))
    if chosen.get("estimator") is None:
        chosen["estimator"] = "forest" if len(rows.shape) == 1 else "network"
    if chosen.get("members") is None:
        chosen["members"] = MEMBERS.get(chosen["estimator"], 1)
    listed = chosen.get("leaf") is None and chosen["estimator"] == "forest"
    chosen["leaf"] = LEAF if chosen.get("leaf") is None else chosen["leaf"]
    own = chosen.get("network")
    chosen["network"] = None if own is None else getattr(own, "__qualname__", type(own).__qualname__)
    settings = Settings(**chosen).checked(rows.sources)
    if settings.estimator == "forest":
        return _fit_passes(kind, rows, settings, given, None, Processes(), listed)
    with together() as processes:
        return _fit_passes(kind, rows, settings, given, own, processes, listed)


def _fit_passes(
    kind: type[Fitted],
    rows: Transitions,
    settings: Settings,
    given: dict[str, Any],
    own: Body | None,
    processes: Processes,
    listed: bool,
) -> Fitted:
    """Fit all members, each backwards over the steps.

    `own` makes a network's layers; with `listed`, observations that repeat become cells of their own.
    """
    progress: Progress = given["progress"]
    check_rewards(rows, settings)
    held = held_out(rows, settings)
    some, repeated = kept_at(rows, held, settings)
    if listed and repeated and LEAF * len(some) <= len(rows):
        settings = replace(settings, leaf=1, trees=1)  # trees would all be alike
    with Begun(given["folder"], rows, settings, processes.rank == 0) as kept:
        passes: dict[bool, list[Swept]] = {False: [], True: []}
        # Best guesses take one member: they are means, and no bounds.
        plan = [(member, guess) for member in range(settings.members) for guess in (False, True)[: 1 + (member == 0)]]
        plan = plan if settings.side > 0 else [(member, guess) for member, guess in plan if not guess]
        for number, (member, guess) in enumerate(plan):
            name = f"member-{member}-{'guess' if guess else 'ceiling'}"
            if not guess:
                seen, weight, places = seen_by(rows, held, settings, member, some)
                if repeated:
                    seen, place = seen.distinct()
                    places = place[places]
                model = _estimator(seen, weight, settings, member, own, processes)
            what = f"Fitting {'best guesses' if guess else kind.WHAT}, {member + 1} of {settings.members}"
            part = part_of(progress, 0.05 + 0.9 * number / len(plan), 0.05 + 0.9 * (number + 1) / len(plan))
            found = sweep(
                model,
                seen,
                settings,
                places,
                guess,
                begun=kept.load(name, seen, len(places)),
                keep=kept.keeper(name),
                progress=part,
                what=what,
            )
            passes[guess].append(found)
            if number == 0:
                rule = rule_of(settings, rows.sources, len(found.values) if settings.horizon else math.inf)
                tested, scores = seen, score(model, seen, weight == 0, found.targets, settings, rule)
        progress(0.95, 1.0, "Keeping the values")
        result = _result(kind, rows, settings, some, repeated, held, passes, tested, scores)
        if given["save"] is not None and processes.rank == 0:
            result.save(given["save"])
        progress(1.0, 1.0, "Done")
        kept.remove()
        return result


def _estimator(
    rows: Transitions, weight: FloatArray, settings: Settings, member: int, own: Body | None, processes: Processes
) -> Estimator:
    seed = int(np.random.default_rng([settings.seed, member]).integers(2**31))
    if settings.estimator == "network":
        return Network(rows, weight, settings, seed, own, processes)
    return Partition(rows, weight, settings, seed)


def _result(
    kind: type[Fitted],
    rows: Transitions,
    settings: Settings,
    some: LongArray,
    repeated: bool,
    held: BoolArray,
    passes: Mapping[bool, list[Swept]],
    tested: Transitions,
    scores: Scores,
) -> Fitted:
    """Return the members' quantile, or mean, as functions of the observation."""
    columns: list[FloatArray] = []
    places: dict[str, tuple[int, int]] = {}

    def add(name: str, numbers: FloatArray) -> None:
        places[name] = (sum(len(part) for part in columns), len(numbers))
        columns.append(numbers)

    for guess, found in passes.items():
        if not found:
            continue
        most = max(len(one.values) for one in found)
        stacked = np.stack([one.values[np.minimum(np.arange(most), len(one.values) - 1)] for one in found])
        q_values = np.stack([one.q_values for one in found])
        if guess:
            add("guess", stacked.mean(axis=0))
            add("guess_q_values", q_values.mean(axis=0).T)
        else:
            add("values", settings.side * np.quantile(stacked, settings.quantile, axis=0))
            add("q_values", settings.side * np.quantile(q_values, settings.quantile, axis=0).T)
            add("spread", stacked[:, -1].std(axis=0)[None])
    table = np.concatenate(columns).T
    lowest = np.fmin.reduce(table, axis=0)  # for actions that are not admissible there
    table = np.where(np.isnan(table), np.where(np.isnan(lowest), np.nanmin(table), lowest), table)
    rng = np.random.default_rng([settings.seed, 5])
    size = math.prod(rows.shape)
    seed = int(np.random.default_rng([settings.seed, 4]).integers(2**31))
    surface: Surface | NetworkSurface
    if len(rows.shape) == 1:
        surface = Surface.fit(flat(rows.observations[some]), table, 1 if repeated else SURFACE_LEAF, seed)
    else:
        surface = NetworkSurface.fit(rows, some, table, settings, seed)
    looked_at = min(settings.sample, max(2, MOST_BYTES // (size * rows.observations.itemsize)))
    logged, fresh = (rows.state[some_of(np.flatnonzero(which), looked_at, rng)] for which in (~held, held))
    reach = Reach.fit(rows.observations[logged], rows.observations[fresh], seed)

    seen = np.asarray(rows.observations[some_of(some, max(1, MOST_BYTES // (8 * size)), rng)], dtype=np.float64)

    def numbers(name: str) -> FloatArray:
        return table.T[places[name][0] : sum(places[name])]

    def best_action(seen: npt.NDArray[Any]) -> LongArray:
        first, count = places["q_values"]
        values = [settings.side * surface.at(seen, first + x) for x in range(count)]
        return np.asarray(np.argmax(values, axis=0), dtype=np.int64)

    left = share_left(numbers("values"), numbers("guess"), numbers("spread")) if passes[True] else None
    return kind(
        settings=settings,
        sources=rows.sources,
        actions=rows.actions,
        columns=rows.columns,
        shape=rows.shape,
        dtype=str(rows.observations.dtype),
        surface=surface,
        reach=reach,
        places=places,
        low=seen.min(axis=0),
        high=seen.max(axis=0),
        middle=np.median(seen, axis=0),
        rows={name: int(np.count_nonzero(rows.source == i)) for i, name in enumerate(rows.sources)},
        excess=max(one.worst for one in passes[False]),
        diagnostics=diagnostics_of(scores, tested, settings, reach, best_action, left),
    )
