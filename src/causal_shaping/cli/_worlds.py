"""Worlds as the command line names them, and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from causal_shaping.errors import ArgumentError

if TYPE_CHECKING:
    from causal_shaping.worlds import ContinuousWorld, World


def complete_world(incomplete: str) -> list[str]:
    """Return the worlds whose names begin like this, for the shell."""
    from causal_shaping.worlds import list_worlds

    return [name for name in list_worlds() if name.startswith(incomplete)]


def world_argument(
    help: str = "A world of the paper, or the path of a text file with a map.",
) -> Any:
    """Return the argument that names a world."""
    return typer.Argument(metavar="WORLD", help=help, autocompletion=complete_world)


def load(name: str, horizon: int | None, wind: str | None) -> World:
    """Return a world whose states can be listed, by name or map."""
    from causal_shaping.worlds import World

    world = load_any(name, horizon, wind)
    if not isinstance(world, World):
        raise ArgumentError(
            f"The states of {name} cannot be listed. Log it with `causal-shaping collect {name}`, "
            "and fit ceilings to the logs with `causal-shaping fit`."
        )
    return world


def load_any(name: str, horizon: int | None, wind: str | None) -> World | ContinuousWorld:
    """Return a world by name or map."""
    from causal_shaping.worlds import load_world
    from causal_shaping.worlds.grid import WINDS

    if wind is None:
        return load_world(name, horizon=horizon)
    try:
        probabilities = [float(part) for part in wind.split(",")]
    except ValueError:
        probabilities = []
    if len(probabilities) != len(WINDS):
        winds = f"{len(WINDS)} probabilities, for {', '.join(WINDS)}"
        raise ArgumentError(f"--wind is {wind!r}; give {winds}, such as 0,0.8,0,0,0.2.")
    return load_world(name, horizon=horizon, wind=probabilities)
