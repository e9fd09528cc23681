"""How fast capped backups are beside Storm, the model checker, on the same interval MDP.

One source with a confounding of 10 gives every outcome an interval of mass, which is written as an interval MDP in
Storm's format DRN. Asked is the largest probability to reach a goal (a hundredth of the states) within some steps, with
masses chosen in its favour: as many capped backups. The values must be equal; then the time of a step counts, which is
what more steps take more. Storm runs in an environment of its own, which is made on first use;
without a network it is left out.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numba
import numpy as np

from causal_shaping.bounds._joint import Layer
from causal_shaping.bounds._sweeps import best_of
from causal_shaping.bounds.settings import CEILING
from studies.speed._made_up import regular_counts
from studies.speed._table import Row, alone, in_turns, main
from studies.speed.ceilings import evidence_of

HERE = Path(__file__).parent
ENVIRONMENT, PACKAGE = HERE / ".rivals" / "stormpy", "stormpy==2.0.0"
FEW, MANY = 10, 60
SHARE, SAME = 100, 1e-6


def python_with_storm():
    """Return the Python of Storm's environment, made if it is missing; None if it cannot be made."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "ready").exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", PACKAGE]
        if subprocess.run([str(part) for part in install], check=False).returncode:
            print(f"{PACKAGE} cannot be installed: Storm is left out.", file=sys.stderr)
            return None
        (ENVIRONMENT / "ready").touch()
    return str(python)


def write_drn(path, masses, states):
    """Write masses as an interval MDP; every so many-th state is a goal, which nobody leaves."""
    goals = range(0, states, SHARE)
    choices = len(masses.state) - int((masses.state % SHARE == 0).sum()) + len(goals)
    head = f"@type: MDP\n@parameters\n\n@reward_models\n\n@nr_states\n{states}\n@nr_choices\n{choices}\n@model\n"
    first, after = masses.first.tolist(), masses.after.tolist()
    lower, upper = masses.lower.tolist(), np.minimum(masses.upper, 1.0).tolist()
    with Path(path).open("w") as file:
        file.write(head)
        last = -1
        for k, (s, x) in enumerate(zip(masses.state.tolist(), masses.action.tolist(), strict=True)):
            if s != last:
                file.write(f"state {s}{' init' if s == 0 else ''}{' goal' if s in goals else ''}\n")
                if s in goals:
                    file.write(f"\taction 0\n\t\t{s} : [1, 1]\n")
                last = s
            if s not in goals:
                file.write(f"\taction {x}\n")
                file.writelines(
                    f"\t\t{after[o]} : [{lower[o]!r}, {upper[o]!r}]\n" for o in range(first[k], first[k + 1])
                )


def ours(masses, states, actions):
    """Return a function that gives the values of some steps."""
    numba.set_num_threads(1)
    layer = Layer(masses, np.zeros((states, actions), dtype=bool), CEILING, by_action=True)

    def reach(steps):
        following, q_values = np.zeros(states + 1), np.empty((states, actions))
        following[:states:SHARE] = 1.0
        for _ in range(steps):
            layer.backup(following, q_values)
            following[:states] = best_of(q_values)
            following[:states:SHARE] = 1.0
        return following[:states]

    return reach


def beside_storm(python, states, successors):
    counts = regular_counts(states, sources=1, successors=successors)
    masses = evidence_of(counts, 10.0).masses()
    masses = masses._replace(rewards=np.zeros_like(masses.rewards))
    assert not masses.rest.any()  # no mass outside of what was seen
    reach = ours(masses, states, len(counts.space.actions))
    with tempfile.TemporaryDirectory() as folder:
        path, values = (str(Path(folder) / name) for name in ("model.drn", "values.json"))
        write_drn(path, masses, states)
        command = [python, str(HERE / "_stormpy.py"), path, values, str(FEW), str(MANY)]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        few, many = json.loads(ran.stdout.splitlines()[-1])
        np.testing.assert_allclose(reach(FEW), json.loads(Path(values).read_text()), rtol=0, atol=SAME)
    seconds = in_turns({"few": lambda: reach(FEW), "many": lambda: reach(MANY)}, 3)
    a_step, of_storm = (seconds["many"] - seconds["few"]) / (MANY - FEW), (many - few) / (MANY - FEW)
    work = f"capped backup: {states:,} states, {successors} successors"
    yield Row(work, 1 / a_step, "steps/s", "Storm's value iteration", 1 / of_storm, least=6.0)


def rows(quick):
    python = python_with_storm()
    if python is not None:
        for successors in (3, 12):
            yield from alone(beside_storm, python, 5_000 if quick else 50_000, successors)


if __name__ == "__main__":
    main(rows, __doc__)
