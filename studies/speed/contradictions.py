"""How fast counts are inspected: CPU seconds of contradictions, coverage and limits of unseen mass, and their growth.

Counts are made up: sources of one world, of which the last is confounded in a fifth of the cells. The first size is
that of a hospital's logs (716 states, 25 actions, 487,000 rows), on which the code before it was compiled took more
than 300 CPU seconds. Every pair of sources that took an action in a state is compared, so that time grows with the
number of such pairs: with the square of the sources where all of them go everywhere.
"""

import time

from causal_shaping import contradictions, coverage
from causal_shaping.diagnose import unseen_limit, unseen_mass
from studies.speed._made_up import sampled_counts
from studies.speed._table import Row, alone, in_turns

HOSPITAL = (716, 25, 3, 487_000, 12)
MINUTE = 60.0


def inspect_counts(name, *sizes):
    """Measure each part of the inspection of counts once."""
    contradictions(sampled_counts(20, 3, 3, 2000, 4))  # compile
    counts, total = sampled_counts(*sizes), 0.0
    for part in (contradictions, coverage, unseen_mass, unseen_limit):
        began = time.process_time()
        found = part(counts)
        seconds = time.process_time() - began
        total += seconds
        yield Row(f"{part.__name__}: {name}", seconds)
        if part is contradictions:
            yield Row(f"contradictions: {name}, pairs", found.compared, "pairs")
    yield Row(f"inspection of counts: {name}", total, most=MINUTE)


def growth(states, sources, rows):
    """Measure twice of something beside half of it; rows double with it."""
    small = {"states": states, "actions": 5, "sources": sources, "rows": rows, "outcomes": 3}
    more = {
        "states": {"states": 2 * states, "rows": 2 * rows},
        "actions": {"actions": 10, "rows": 2 * rows},
        "sources": {"sources": 2 * sources, "rows": 2 * rows},
        "rows": {"rows": 2 * rows},
    }
    half = sampled_counts(**small)
    for name, change in more.items():
        whole = sampled_counts(**small | change)
        for part in (contradictions, coverage):
            works = {"half": lambda part=part: part(half), "whole": lambda part=part, whole=whole: part(whole)}
            seconds = in_turns(works, 3)
            work = f"{part.__name__}: twice the {name}, {sources} sources"
            yield Row(work, seconds["whole"], "CPU s", "half of them", seconds["half"], most=2.3)


def rows(quick):
    yield from alone(inspect_counts, "hospital, 716 states", *HOSPITAL)
    states = 100_000 if quick else 1_000_000
    yield from alone(inspect_counts, f"{states:,} states", states, 5, 3, 100 * states, 3)
    sources = 100 if quick else 1000
    # Each source has been in a few of the states, and then all of them in all.
    yield from alone(inspect_counts, f"{sources:,} small sources", 10_000, 5, sources, 500 * sources, 3)
    yield from alone(inspect_counts, f"{sources:,} sources everywhere", 20, 5, sources, 1000 * sources, 3)
    yield from alone(growth, 30_000, 3, 3_000_000)
    yield from alone(growth, 100, 40, 800_000)
