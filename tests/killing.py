"""A run that is killed again and again."""

import os
import signal
import subprocess
import sys
import time

import numpy as np


def killed_five_times(code, folder, parts_of, most):
    """Run code with a folder as its argument, and kill it five times after up to `most` more parts.

    Return how many parts there were after each.
    """
    rng, done = np.random.default_rng(7), []
    for _ in range(5):
        enough = len(parts_of(folder)) + rng.integers(1, most)
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while len(parts_of(folder)) < enough and process.poll() is None:
            time.sleep(0.002)
        assert process.poll() is None, "the run was over before it could be killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        done.append(len(parts_of(folder)))
    return done
