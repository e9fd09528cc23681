"""What bounds claim in a known world, and whether it is true.

- `bound_claims`: ceilings and floors of a case against V*.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from causal_shaping.bounds.results import Bounds
from studies.field.methods import Materials
from studies.field.plan import CONFIDENCE

ROUNDING = 1e-9
"""A bound is false if it lies on the wrong side of V* by more than this share of the largest value."""


def bound_claims(materials: Materials) -> list[dict[str, Any]]:
    """Return claims at 95% confidence, each about V* of all steps and states at once, and what came of them.

    Any confounding is allowed, or the true Gamma of each source is known; anything may follow.
    Last, plug-in ceilings, which claim nothing.
    """
    anything: dict[str, Any] = {"confidence": CONFIDENCE, "confounding": np.inf, "support": "any"}
    known = anything | {"confounding": materials.true_gammas}
    rows = []
    for name, options in (("any confounding, anything may follow", anything), ("the true Gamma", known)):
        for side, bound in (("ceiling", materials.ceilings), ("floor", materials.floors)):
            about = {"claim": f"{side}: {name}", "confidence": CONFIDENCE}
            rows.append(about | _facts(materials, bound(**options)))
    plug_in = {"claim": "ceiling: plug-in, as the potential", "confidence": None}
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
