"""A run that is killed again and again."""

import multiprocessing
import time

import numpy as np


def started(run, *arguments, modules=()):
    """Start a function in a process of its own, forked from one that has imported `modules`, and return the process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    process = context.Process(target=run, args=arguments)
    process.start()
    return process


def finished(run, *arguments, modules=()):
    """Run a function to its end in a process of its own."""
    process = started(run, *arguments, modules=modules)
    process.join()
    assert process.exitcode == 0


def killed_five_times(run, folder, parts_of, most, modules=()):
    """Run a function with a folder as its argument, and kill it five times after up to `most` more parts.

    Return how many parts there were after each.
    """
    rng, done = np.random.default_rng(7), []
    for _ in range(5):
        enough = len(parts_of(folder)) + rng.integers(1, most)
        process = started(run, folder, modules=modules)
        while len(parts_of(folder)) < enough and process.is_alive():
            time.sleep(0.002)
        assert process.is_alive(), "the run was over before it could be killed"
        process.kill()
        process.join()
        done.append(len(parts_of(folder)))
    return done
