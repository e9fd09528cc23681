"""Ceilings from logs whose states cannot be listed.

- `fit_ceilings`, `fit_floors`: from logs to a function of the observation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from causal_shaping._checks import check_names
from causal_shaping._progress import Progress, no_progress, part_of
from causal_shaping.data.arrays import BoolArray, FloatArray, LongArray
from causal_shaping.data.transitions import Transitions
from causal_shaping.errors import ArgumentError
from causal_shaping.fitted._features import Observe, with_features
from causal_shaping.fitted._forest import Partition, Reach, Surface, flat
from causal_shaping.fitted._held_out import Scores, score
from causal_shaping.fitted._members import check_rewards, held_out, kept_at, seen_by, some_of
from causal_shaping.fitted._resume import begun_in
from causal_shaping.fitted._steps import Swept, rule_of, sweep
from causal_shaping.fitted.diagnostics import diagnostics_of, share_left
from causal_shaping.fitted.results import FittedCeilings, FittedFloors
from causal_shaping.fitted.settings import OF_NETWORKS, Settings
from causal_shaping.logs.counting import Item
from causal_shaping.logs.opening import open_logs
from causal_shaping.logs.transitions import read_transitions, transitions_of

SURFACE_LEAF = 5
"""Distinct observations in a leaf of the surface that keeps the values; 1 where observations repeat."""

LEAF = 60
"""Rows in a leaf by default; where observations repeat, so many of each on average make each a cell of its own."""

MOST_BYTES = 2**29
"""Observations that are looked at together take at most so much memory."""

Fitted = TypeVar("Fitted", bound=FittedCeilings)


def fit_ceilings(
    logs: Item | Iterable[Item] | Transitions,
    *,
    reward_max: float,
    horizon: int | None = None,
    discount: float = 1.0,
    support: str = "observed",
    confounding: Mapping[str, float] | float = math.inf,
    observe: Observe | None = None,
    expectile: float = 0.99,
    atoms: int = 51,
    rarest_action: float = 0.001,
    least_rows: float = 1.0,
    trees: int = 8,
    leaf: int | None = None,
    sample: int = 100_000,
    kept: int = 50_000,
    most_rows: int = 1_000_000,
    members: int = 3,
    quantile: float = 0.9,
    held_out: float = 0.1,
    settled: float = 1e-3,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    save: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
    **columns: Any,
) -> FittedCeilings:
    """Fit ceilings of the optimal value to logs whose states are vectors of real numbers, or images with an encoder.

    Needs the extra `fitted`. A forest maps an observation to shares P_i(x, z | s) of (action, value) in each source:
    the value is the reward plus the ceiling of the next state, split between neighbouring atoms so that its mean stays.
    Then

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
        observe: a function from a batch of observations [n, *shape], as the logs hold them, to features [n, k], which
            the forest takes in their place; needed for images, whose encoder it is. Ceilings and potential then take
            observations as the logs hold them, and call it. It is code and not saved: pass it again to load the fit.
        expectile: the level of w, an expectile of the values that followed the state, the largest over sources: 1 takes
            the largest that was seen, 0.5 the mean. In a windy field 0.99 was the lowest with nearly no state below the
            optimum.
        atoms: values that are distinguished. More cost time, and change little beyond 41.
        rarest_action: an action with a smaller share in every source counts as never taken, and may do anything.
        least_rows: a source with fewer rows in a leaf, on average over trees, shows nothing there.
        trees: trees in a forest.
        leaf: rows in a leaf, of all sources. Fewer fit finer and noisier; 1 makes each distinct observation its own
            cell, as in a table. By default 60, or 1 where observations repeat so often on average.
        sample: rows that the structure of a tree is grown on.
        kept: observations at which values are kept; values elsewhere are those around.
        most_rows: rows that a member sees; of larger logs it sees some episodes, the same share of each source's. It
            bounds memory, about 300 bytes a row and the observations themselves, and time.
        members: forests, each from its own seed and a random half of the episodes of each source; a single one sees
            all of them.
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
    logs, bound, columns = given.pop("logs"), {"reward_bound": given.pop("reward_max")}, given.pop("columns")
    return _fit(FittedCeilings, logs, bound, given | columns)


def fit_floors(logs: Item | Iterable[Item] | Transitions, *, reward_min: float, **options: Any) -> FittedFloors:
    """Fit floors of the optimal value: the mirror image of `fit_ceilings`, with the worst allowed case for free mass.

    Args:
        logs: see `fit_ceilings`.
        reward_min: the least that a step can pay.
        options: the other arguments of `fit_ceilings`.
    """
    return _fit(FittedFloors, logs, {"reward_bound": reward_min, "side": -1.0}, options)


def _fit(
    kind: type[Fitted],
    logs: Item | Iterable[Item] | Transitions,
    bound: Mapping[str, Any],
    options: dict[str, Any],
) -> Fitted:
    """Fit all members, each backwards over the steps; `options` are the other arguments of `fit_ceilings`."""
    if gone := [name for name in OF_NETWORKS if name in options]:
        raise ArgumentError(
            f"{gone[0]}= was for networks, which version 0.2.0 was the last to fit. A forest is fitted without it; "
            "for images pass observe=, a function from images to features."
        )
    check_names(options, f"fit_{kind.WHAT}", fit_ceilings, read_transitions, open_logs)
    progress, observe = options.pop("progress", no_progress), options.pop("observe", None)
    folder, save, leaf = (options.pop(name, None) for name in ("folder", "save", "leaf"))
    names = Settings.__dataclass_fields__.keys() - {"reward_bound", "side"}
    chosen = {name: options.pop(name) for name in names & options.keys()}
    logged = transitions_of(logs, options, part_of(progress, 0.0, 0.05))
    rows = with_features(logged, observe)
    settings = Settings(**bound, **chosen, leaf=LEAF if leaf is None else leaf).checked(rows.sources)
    check_rewards(rows, settings)
    held = held_out(rows, settings)
    some, repeated = kept_at(rows, held, settings)
    if leaf is None and repeated and LEAF * len(some) <= len(rows):
        settings = replace(settings, leaf=1, trees=1)  # trees would all be alike

    with begun_in(folder, rows, settings) as kept:
        found: dict[bool, list[Swept]] = {False: [], True: []}
        passes = settings.members + (settings.side > 0)
        for member in range(settings.members):
            seen, weight, places = seen_by(rows, held, settings, member, some)
            if repeated:
                seen, place = seen.distinct()
                places = place[places]
            forest = forest_of(seen, weight, settings, member)
            # Best guesses take one member: they are means, and no bounds. Floors have none.
            for guess in (False, True) if member == 0 and settings.side > 0 else (False,):
                name = f"member-{member}-{'guess' if guess else 'ceiling'}"
                done = sum(map(len, found.values()))
                swept = sweep(
                    forest,
                    seen,
                    settings,
                    places,
                    guess,
                    begun=kept.load(name, seen, len(places)),
                    keep=partial(kept.keep, name),
                    progress=part_of(progress, 0.05 + 0.9 * done / passes, 0.05 + 0.9 * (done + 1) / passes),
                    what=f"Fitting {'best guesses' if guess else kind.WHAT}, {member + 1} of {settings.members}",
                )
                found[guess].append(swept)
                if done == 0:
                    rule = rule_of(settings, rows.sources, len(swept.values) if settings.horizon else math.inf)
                    tested, scores = seen, score(forest, seen, weight == 0, swept.targets, settings, rule)
        progress(0.95, 1.0, "Keeping the values")
        result = _result(kind, logged, rows, observe, settings, some, repeated, held, found, tested, scores)
        if save is not None:
            result.save(save)
        progress(1.0, 1.0, "Done")
        kept.remove()
        return result


def forest_of(rows: Transitions, weight: FloatArray, settings: Settings, member: int) -> Partition:
    """Return the trees of a member, grown on the rows that have weight."""
    return Partition(rows, weight, settings, int(np.random.default_rng([settings.seed, member]).integers(2**31)))


def _result(
    kind: type[Fitted],
    logged: Transitions,
    rows: Transitions,
    observe: Observe | None,
    settings: Settings,
    some: LongArray,
    repeated: bool,
    held: BoolArray,
    found: Mapping[bool, list[Swept]],
    tested: Transitions,
    scores: Scores,
) -> Fitted:
    """Return the members' quantile, and the best guess, as functions of the observation.

    `logged` are the rows as they were read, `rows` the same with features in place of their observations.
    """
    ceilings = found[False]
    most = max(len(one.values) for one in ceilings)
    values = np.stack([one.values[np.minimum(np.arange(most), len(one.values) - 1)] for one in ceilings])
    q_values = np.stack([one.q_values for one in ceilings])
    parts = {
        "values": settings.side * np.quantile(values, settings.quantile, axis=0),
        "q_values": settings.side * np.quantile(q_values, settings.quantile, axis=0).T,
        "spread": values[:, -1].std(axis=0)[None],
    }
    for guess in found[True]:
        parts |= {"guess": guess.values, "guess_q_values": guess.q_values.T}
    ends = np.cumsum([len(part) for part in parts.values()]).tolist()
    places = {name: (end - len(part), len(part)) for (name, part), end in zip(parts.items(), ends, strict=True)}
    table = np.concatenate(list(parts.values())).T
    lowest = np.fmin.reduce(table, axis=0)  # for actions that are not admissible there
    table = np.where(np.isnan(table), np.where(np.isnan(lowest), np.nanmin(table), lowest), table)
    seed = int(np.random.default_rng([settings.seed, 4]).integers(2**31))
    surface = Surface.fit(flat(rows.observations[some]), table, 1 if repeated else SURFACE_LEAF, seed)

    rng = np.random.default_rng([settings.seed, 5])
    numbers = rows.shape[0]
    looked_at = min(settings.sample, max(2, MOST_BYTES // (numbers * rows.observations.itemsize)))
    near, fresh = (rows.state[some_of(np.flatnonzero(which), looked_at, rng)] for which in (~held, held))
    reach = Reach.fit(rows.observations[near], rows.observations[fresh], seed)
    seen = np.asarray(rows.observations[some_of(some, max(1, MOST_BYTES // (8 * numbers)), rng)], dtype=np.float64)

    def best_action(observations: npt.NDArray[Any]) -> LongArray:
        q_values = settings.side * surface.at(observations, *places["q_values"])
        return np.asarray(np.argmax(q_values, axis=1), dtype=np.int64)

    left = share_left(parts["values"], parts["guess"], parts["spread"]) if found[True] else None
    return kind(
        settings=settings,
        sources=rows.sources,
        actions=rows.actions,
        columns=logged.columns,
        shape=logged.shape,
        dtype=str(logged.observations.dtype),
        surface=surface,
        reach=reach,
        places=places,
        low=seen.min(axis=0),
        high=seen.max(axis=0),
        middle=np.median(seen, axis=0),
        rows={name: int(np.count_nonzero(rows.source == i)) for i, name in enumerate(rows.sources)},
        excess=max(one.worst for one in ceilings),
        diagnostics=diagnostics_of(scores, tested, settings, reach, best_action, left),
        observe=observe,
    )
