"""The logs that golden results are computed from: plain files, written once and never made again.

Random worlds are drawn here with NumPy alone, so that no change of the package can change them.
The logs of the paper's worlds come from the package as it was at version 0.2.

    python tests/golden/inputs.py     writes the files that are missing
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

LOGS = Path(__file__).parent / "logs"

PAPER = ("windy-empty", "lavacross-easy", "lavacross-hard", "lavacross-maze",
         "lavacross-maze-fewer-coins", "walking-robot")  # fmt: skip
PAPER_ROWS = 1_500

RANDOM = {
    # name: states, actions, noises, steps, sources, episodes a source, and what is special
    "tiny": (3, 2, 2, 3, 2, 60, {}),
    "costs": (4, 3, 3, 4, 2, 150, {"low": -1.0, "high": 0.0}),
    "both-signs": (5, 2, 3, 5, 3, 150, {}),
    "inadmissible": (4, 3, 2, 4, 2, 150, {"forbid": True}),
    "by-step": (3, 2, 3, 3, 2, 300, {}),
    "reward-bins": (4, 2, 3, 4, 2, 200, {"jitter": True}),
    "unknown-outcomes": (4, 2, 3, 4, 2, 200, {"unknown": 0.15}),
    "unknown-by-step": (3, 2, 3, 3, 2, 300, {"unknown": 0.2}),
    "loops": (5, 2, 3, 12, 2, 80, {"end": 0.05}),
    "few-rows": (8, 4, 4, 4, 3, 12, {}),
    "one-source": (4, 3, 3, 4, 1, 200, {}),
    "other-worlds": (3, 2, 3, 4, 3, 250, {"strangers": True}),
}
"""Random worlds whose demonstrators see the noise; the last one's sources watched different worlds."""


def random_log(name: str) -> dict[str, list]:
    """Return the rows of a random world: source, episode, step, state, action, reward, next state, how it ended."""
    states, actions, noises, horizon, sources, episodes, special = RANDOM[name]
    rng = np.random.default_rng(list(name.encode()))

    def dynamics():
        low, high = special.get("low", -1.0), special.get("high", 1.0)
        after = rng.integers(states, size=(states, actions, noises))
        paid = np.round(rng.uniform(low, high, (states, actions, noises)), 1)
        ends = rng.random((states, actions, noises)) < special.get("end", 0.15)
        return after, paid, ends

    after, paid, ends = dynamics()
    chance = rng.dirichlet(np.ones(noises), states)
    rows = {key: [] for key in ("source", "episode", "step", "state", "action", "reward", "next_state",
                                "terminated", "truncated")}  # fmt: skip
    for i in range(sources):
        if special.get("strangers") and i:
            after, paid, ends = dynamics()
        beta = rng.dirichlet(np.full(actions, 0.7), (states, noises))
        for episode in range(episodes):
            s = rng.integers(states)
            for step in range(horizon):
                u = rng.choice(noises, p=chance[s])
                x = rng.choice(actions, p=beta[s, u])
                if special.get("forbid") and x == s % actions:
                    x = (x + 1) % actions
                reward = float(paid[s, x, u])
                if special.get("jitter"):
                    reward = float(reward + rng.uniform(0, 0.1))
                ended = bool(ends[s, x, u])
                last = ended or step == horizon - 1
                unknown = last and rng.random() < special.get("unknown", 0.0)
                following = f"s{after[s, x, u]}"
                if ended or unknown:
                    following = None
                values = (f"d{i}", episode, step, f"s{s}", f"x{x}", reward, following,
                          ended and not unknown, last and not ended and not unknown)  # fmt: skip
                for key, value in zip(rows, values, strict=True):
                    rows[key].append(value)
                if last:
                    break
                s = after[s, x, u]
    return rows


def paper_log(name: str) -> dict[str, list]:
    """Return the rows of a world of the paper, collected by the package."""
    import causal_shaping as cs

    world = cs.load_world(name)
    rows: dict[str, list] = {}
    for source in world.demonstrators:
        logs = world.collect(source, PAPER_ROWS, 7, source)
        labels = np.array([json.dumps(label) for label in map(list, world.states)], dtype=object)
        columns = {
            "source": [source] * len(logs),
            "episode": logs.episode.tolist(),
            "step": logs.step.tolist(),
            "state": labels[logs.state].tolist(),
            "action": [world.actions[x] for x in logs.action],
            "reward": logs.reward.tolist(),
            "next_state": [None if s < 0 else labels[s] for s in logs.next_state],
            "terminated": logs.terminated.tolist(),
            "truncated": logs.truncated.tolist(),
        }
        for key, column in columns.items():
            rows.setdefault(key, []).extend(column)
    return rows


FITTED = ("costs-in-a-plane", "goal-on-a-line")


def continuous_log(name: str) -> dict[str, list]:
    """Return the rows of a world of numbers with a gust that two operators felt."""
    rng = np.random.default_rng(list(name.encode()))
    columns = ("source", "episode", "step", "x", "y", "action", "reward", "next_x", "next_y", "terminated", "truncated")
    rows = {key: [] for key in columns}
    for source, skill in (("skilled", 0.9), ("random", 0.0)):
        for episode in range(60):
            x, y = rng.uniform(0, 1, 2)
            for step in range(10):
                gust = rng.choice([-0.1, 0.1])
                action = int(gust < 0) if rng.random() < skill else int(rng.integers(2))
                nx = float(np.clip(x + 0.15 * (2 * action - 1) + gust, 0, 1.2))
                ny = float(np.clip(y + 0.05 * rng.normal(), 0, 1))
                arrived = nx > 1
                paid = -0.1 - 0.2 * (ny > 0.5) if name == "costs-in-a-plane" else 1.0 * arrived - 0.05
                last = arrived or step == 9
                values = (source, episode, step, x, y, action, float(paid), nx, ny, arrived, last and not arrived)
                for key, value in zip(columns, values, strict=True):
                    rows[key].append(value)
                if last:
                    break
                x, y = nx, ny
    return rows


FILES = Path(__file__).parent / "files"


def write_files() -> None:
    """Write one small log in every kind of file that people have."""
    FILES.mkdir(exist_ok=True)
    rows = {key: column[:200] for key, column in random_log("both-signs").items()}
    last = len(rows["episode"]) - 1
    rows["truncated"][last] = not rows["terminated"][last]
    table = pa.table(rows)
    pq.write_table(table, FILES / "plain.parquet", compression="zstd")

    def text(name, columns, opener=open, delimiter=","):
        with opener(FILES / name, "wt", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))

    yes = {True: "yes", False: "no"}
    number = [int(s[1:]) for s in rows["state"]]
    text("plain.csv", {k: ["" if v is None else v for v in column] for k, column in rows.items()})
    text("zipped.csv.gz", {k: ["" if v is None else v for v in c] for k, c in rows.items()}, gzip.open)
    text("no-next-state.csv", {k: c for k, c in rows.items() if k != "next_state"})
    text("own-names.csv", {
        "patient": [f"p {e}" for e in rows["episode"]],
        "day": [step + 1 for step in rows["step"]],
        "ward; drop": rows["source"],
        "half": [n // 2 for n in number],
        "rest": [n % 2 for n in number],
        "drug": rows["action"],
        "cost": [-r for r in rows["reward"]],
        "outcome": ["cured" if t else "ill" for t in rows["terminated"]],
        "discharged": [yes[t] == "yes" for t in rows["truncated"]],
    })  # fmt: skip
    text("missing.csv", {**{k: c for k, c in rows.items() if k != "next_state"},
                         "state": ["" if n == 1 else f"s{n}" for n in number]})  # fmt: skip
    text("numbers.csv", {**{k: c for k, c in rows.items() if k not in ("state", "next_state")},
                         "age": [10.0 * n + 0.5 for n in number], "stage": number})  # fmt: skip
    with pa.CompressedOutputStream(FILES / "zstd.csv.zst", "zstd") as stream:
        pc.write_csv(table, stream)
    for day in (0, 1):  # a folder of files, whose names hold a column
        folder = FILES / "by-day" / f"day={day}"
        folder.mkdir(parents=True)
        chosen = [e % 2 == day for e in rows["episode"]]
        pq.write_table(table.filter(pa.array(chosen)), folder / "logs.parquet", compression="zstd")


def main() -> None:
    LOGS.mkdir(exist_ok=True)
    logs = dict.fromkeys(PAPER, paper_log) | dict.fromkeys(RANDOM, random_log)
    logs |= dict.fromkeys(FITTED, continuous_log)
    for name, make in logs.items():
        path = LOGS / f"{name}.parquet"
        if not path.exists():
            pq.write_table(pa.table(make(name)), path, compression="zstd")
            print(path, file=sys.stderr)
    if not FILES.exists():
        write_files()


if __name__ == "__main__":
    main()
