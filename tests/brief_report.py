"""A report of the study that takes little time: what no results change is brief in it, and computed once."""

from functools import cache, partial

from studies.paper import robot, tables, theory_tables as theory
from studies.paper.theory import picture


def shorten(patch):
    """Let reports examine the theory in two short runs, and the walking robot with one seed."""
    examined = cache(theory.examined.__wrapped__)
    for module, name, brief in (
        (theory, "EPISODES", 50),
        (theory, "SEEDS", 2),
        (theory, "examined", examined),
        (tables, "examined", examined),
        (picture, "MEASURED", 50),
        (tables, "robot_tables", cache(partial(robot.robot_tables, seeds=1))),
    ):
        patch.setattr(module, name, brief)
