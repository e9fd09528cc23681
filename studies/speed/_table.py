"""What all benchmarks share: a row of the table, how it is measured, and how it is printed and kept.

- `Row`: a measurement beside its yardstick.
- `beside`: CPU seconds of some work beside those of its yardstick. Wall time would measure what else the machine does.
- `alone`: the same in a process of its own, whose peak of memory is that of the work.
- `show`: print rows as one table.
"""

import gc
import json
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

SECONDS = "CPU s"
WIDTHS = (58, 17, 34, 8, 9, 8, 8)
HEADS = ("work", "ours", "yardstick", "ratio", "goal", "peak MB", "before")


@dataclass(frozen=True)
class Row:
    """A measurement: `ours`, and `theirs` of a named yardstick in the same unit.

    `most` and `least` are the goal: of the ratio ours / theirs, without a yardstick of `ours`. `peak` is the most
    memory that the process held, in MB.
    """

    work: str
    ours: float
    unit: str = SECONDS
    yardstick: str = ""
    theirs: float | None = None
    most: float | None = None
    least: float | None = None
    peak: float | None = None

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

    def cells(self, before=None):
        """Return the row as text; `before` is the result of the last run, None if there is none."""
        ours, theirs = f"{number(self.ours)} {self.unit}", f"{number(self.theirs)} {self.yardstick}".strip()
        return self.work, ours, theirs, number(self.ratio), self.goal, number(self.peak), number(before)


def number(value):
    """Return a number with three digits; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# Measuring -----------------------------------------------------------------------------------------------------------


def in_turns(works, repeats):
    """Return the fewest CPU seconds of each of some functions, which run in turns: a busy machine hits all alike."""
    seconds = dict.fromkeys(works, math.inf)
    for _ in range(repeats):
        for name, work in works.items():
            gc.collect()
            began = time.process_time()
            work()
            seconds[name] = min(seconds[name], time.process_time() - began)
    return seconds


def beside(work, ours, yardstick, theirs, repeats=3, most=None):
    """Return the row of a function beside another one. A first call compiles, and tells the peak of memory."""
    ours()
    held = peak()
    seconds = in_turns({"ours": ours, "theirs": theirs}, repeats)
    return Row(work, seconds["ours"], SECONDS, yardstick, seconds["theirs"], most=most, peak=held)


def peak():
    """Return the most memory that this process has held, in MB.

    Not `ru_maxrss`, which a new process inherits from the one that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))


def alone(function, *arguments, **options):
    """Return what a function gives in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()


# Printing and keeping ------------------------------------------------------------------------------------------------


def show(rows, path=None, some=False):
    """Print rows as they come, beside those of the last run; keep them in a JSON file if there is a path.

    If they are only some, the others of the last run stay in the file.
    """
    kept = {held["work"]: held for held in json.loads(path.read_text())} if path and path.exists() else {}
    last = {work: Row(**held).result for work, held in kept.items()}
    kept = kept if some else {}
    _print(HEADS)
    for row in rows:
        _print(row.cells(last.get(row.work)))
        kept[row.work] = asdict(row)
        if path:
            path.write_text(json.dumps(list(kept.values()), indent=1) + "\n")


def _print(cells):
    print("".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True)).rstrip(), flush=True)
