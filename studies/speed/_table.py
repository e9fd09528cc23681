"""What all benchmarks share: a row of the table, how it is measured, and how it is printed and kept.

- `Row`: a measurement beside its yardstick.
- `alone`: rows that are measured in a process of its own, with its peak of memory.
- `best_of`, `in_turns`: CPU seconds. Wall time would measure what else the machine does.
- `middle_of`: several runs as one, with their spread.
- `show`: print rows as one table.
"""

import gc
import itertools
import json
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

MILLION = 1_000_000
SECONDS, SPEED = "CPU s", "million/s"
WIDTHS = (58, 17, 34, 8, 14, 9, 8, 8)
HEADS = ("work", "ours", "yardstick", "ratio", "spread", "goal", "peak MB", "before")


@dataclass(frozen=True)
class Row:
    """A measurement: `ours`, and `theirs` of a named yardstick in the same unit.

    `most` and `least` are the goal: of the ratio ours / theirs, without a yardstick of `ours`. `peak` is the most
    memory that the process held, in MB. Of several runs it is the middle one, and `spread` their least and most.
    """

    work: str
    ours: float
    unit: str = SECONDS
    yardstick: str = ""
    theirs: float | None = None
    most: float | None = None
    least: float | None = None
    peak: float | None = None
    spread: tuple[float, float] | None = None

    @property
    def ratio(self):
        """Ours as a multiple of theirs; None without a yardstick."""
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def result(self):
        """What the goal is about: the ratio, or `ours`."""
        return self.ours if self.ratio is None else self.ratio

    @property
    def goal(self):
        """The goal in words, with a mark if it is missed."""
        if self.most is not None:
            return f"<= {self.most:g}" + (" !" if self.result > self.most else "")
        if self.least is not None:
            return f">= {self.least:g}" + (" !" if self.result < self.least else "")
        return ""

    def cells(self, before):
        """Return the row as text; `before` is the result of the last run, None if there is none."""
        return (
            self.work,
            f"{number(self.ours)} {self.unit}",
            "" if self.theirs is None else f"{number(self.theirs)} {self.yardstick}",
            "" if self.ratio is None else number(self.ratio),
            "" if self.spread is None else " to ".join(map(number, self.spread)),
            self.goal,
            "" if self.peak is None else f"{self.peak:,.0f}",
            "" if before is None else number(before),
        )


def number(value):
    """Return a number with three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# Measuring -----------------------------------------------------------------------------------------------------------


def best_of(work, repeats=3):
    """Return the fewest CPU seconds of some runs: what the machine can do when it is left alone."""
    return in_turns({"": work}, repeats)[""]


def in_turns(works, repeats=5):
    """Return the fewest CPU seconds of each of some functions, which run in turns: a busy machine hits all alike."""
    seconds = dict.fromkeys(works, math.inf)
    for _ in range(repeats):
        for name, work in works.items():
            gc.collect()
            began = time.process_time()
            work()
            seconds[name] = min(seconds[name], time.process_time() - began)
    return seconds


def peak():
    """Return the most memory that this process has held, in MB.

    Not `ru_maxrss`, which a new process inherits from the one that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))


def alone(function, *arguments):
    """Return the rows that a function gives in a process of its own, with the peak of its memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_peak, function, arguments).result()


def _with_peak(function, arguments):
    rows = list(function(*arguments))
    return [replace(row, peak=peak()) if row.peak is None else row for row in rows]


def middle_of(runs):
    """Return each row as the middle one of some runs by its result, with the least and the most of them."""
    by_work = {}
    for row in itertools.chain(*runs):
        by_work.setdefault(row.work, []).append(row)
    for found in by_work.values():
        found.sort(key=lambda row: row.result)
        spread = (found[0].result, found[-1].result) if len(found) > 1 else None
        yield replace(found[len(found) // 2], spread=spread)


# Printing and keeping ------------------------------------------------------------------------------------------------


def show(rows, path=None, some=False):
    """Print rows as they come, beside those of the last run; keep them in a JSON file if there is a path.

    If they are only some, the others of the last run stay in the file.
    """
    kept = {} if path is None or not path.exists() else {held["work"]: held for held in json.loads(path.read_text())}
    last = {work: Row(**held).result for work, held in kept.items()}
    kept = kept if some else {}
    _print(HEADS)
    for row in rows:
        _print(row.cells(last.get(row.work)))
        kept[row.work] = asdict(row)
        if path is not None:
            path.write_text(json.dumps(list(kept.values()), indent=1) + "\n")


def _print(cells):
    print("".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip(), flush=True)
