"""Storm's side of `storm.py`; runs in an environment of its own, with stormpy.

    python -m studies.speed._stormpy MODEL.drn VALUES.json STEPS...

For each number of steps: CPU seconds of the largest probability to reach a goal within so many, as a line of JSON. The
values of the first number of steps are written to a file.
"""

import json
import sys
import time
from pathlib import Path

import stormpy

REPEATS = 3


def main(path, values, *steps):
    model = stormpy.build_model_from_drn[stormpy.Interval](path)
    mode = stormpy.UncertaintyResolutionMode.COOPERATIVE  # masses are chosen to raise the probability
    seconds = {}
    for _ in range(REPEATS):
        for most in steps:
            asked = stormpy.parse_property(f'Pmax=? [F<={most} "goal"]')
            began = time.process_time()
            found = stormpy.model_checking(
                model, asked, uncertainty_resolution_mode=mode, environment=stormpy.Environment()
            )
            taken = time.process_time() - began
            seconds[most] = min(taken, seconds.get(most, taken))
            if most == steps[0]:
                Path(values).write_text(json.dumps([found.get_value(s) for s in range(model.nr_states)]))
    print(json.dumps(list(seconds.values())))


if __name__ == "__main__":
    main(*sys.argv[1:])
