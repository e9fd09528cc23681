"""What bounds claim in a known world, and whether it is true.

- `bound_claims`: ceilings and floors of a case against V*.
- `rarest_outcome`: whether an observed support assumes something true.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from causal_shaping.bounds.results import Bounds
from causal_shaping.bounds.support import RAREST
from studies.field.methods import Materials
from studies.field.plan import CONFIDENCE

ROUNDING = 1e-9
"""A bound is false if it lies on the wrong side of V* by more than this share of the largest value."""


def bound_claims(materials: Materials) -> list[dict[str, Any]]:
    """Return claims at 95% confidence, each about V* of all steps and states at once, and what came of them.

    Any confounding is allowed, with anything possible or with what was seen; or the true Gamma of each source is known.
    Last, plug-in ceilings, which claim nothing.
    """
    seen = bool(rarest_outcome(materials) >= RAREST)
    anything: dict[str, Any] = {"confidence": CONFIDENCE, "confounding": np.inf, "support": "any"}
    rows = []
    for name, options, true in (
        ("any confounding, anything may follow", anything, True),
        ("any confounding, what was seen may follow", anything | {"support": "observed"}, seen),
        ("the true Gamma", anything | {"confounding": materials.true_gammas}, True),
    ):
        for side, bound in (("ceiling", materials.ceilings), ("floor", materials.floors)):
            about = {"claim": f"{side}: {name}", "confidence": CONFIDENCE, "assumed": true}
            rows.append(about | _facts(materials, bound(**options)))
    plug_in = {"claim": "ceiling: plug-in, as the potential", "confidence": None, "assumed": True}
    return [*rows, plug_in | _facts(materials, materials.ceilings())]


def _facts(materials: Materials, bound: Bounds) -> dict[str, Any]:
    """Return how many values are on the wrong side of V*, and the mean distance from V*."""
    world = materials.world
    order, _ = bound.space.positions(world.space)
    alive = ~world.model.terminal
    best = world.model.optimum(world.horizon).values[:, alive]
    away = bound.SIDE * (bound.values[:, order][:, alive] - best)
    scale = max(float(np.abs(best).max()), 1e-12)
    return {
        "violations": int((away < -ROUNDING * scale).sum()),
        "distance": float(away[0].mean() / scale),
    }


def rarest_outcome(materials: Materials) -> float:
    """Return the smallest share of the sources' pooled visits to a state after which one of its outcomes follows."""
    world, counts = materials.world, materials.counts
    model, exists = world.model, world.space.is_admissible
    visits = np.zeros((len(counts.sources), len(world.states)))
    np.add.at(visits, (counts.source, counts.state), counts.n)
    rarest = 1.0
    for s in np.flatnonzero(visits.sum(axis=0)):
        weight = visits[:, s] / visits[:, s].sum()
        tables = [world.demonstrators[name][s] for name in counts.sources]
        beta = sum(share * table for share, table in zip(weight, tables, strict=True))
        mass = (model.noise[s][:, None] * beta).T[exists[s]]  # [actions that exist, noises]
        possible = np.broadcast_to(model.noise[s] > 0, mass.shape)
        after, reward = model.next_state[s][exists[s]][possible], model.reward[s][exists[s]][possible]
        _, which = np.unique(np.stack([after, reward]), axis=1, return_inverse=True)
        rarest = min(rarest, float(np.bincount(which.ravel(), mass[possible]).min()))
    return rarest
