"""Regenerate the tables of the documentation: `make tables`, a minute or two.

Each table stands in its page between `<!-- begin NAME -->` and `<!-- end NAME -->`; the text between is replaced.
"""

import importlib
import json
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from functools import cache, partial

import numpy as np

import causal_shaping as cs
from causal_shaping.learners.seeds import NEARLY, optimal_ratios
from causal_shaping.storage import replacing
from studies import ROOT, parts
from studies.calibration import learner
from studies.docs import potentials
from studies.paper.baselines import behaviour_potential
from studies.paper.theory.examination import usual_potentials
from studies.paper.theory.regret import regret_bound
from studies.paper.theory.shaped import Shaped
from studies.paper.theory_tables import theory_tables
from studies.speed._table import Row

HERE = ROOT / "docs"
STUDIES = ROOT / "studies"
FIELD = json.loads((HERE / "field-study.json").read_text())
"""What the page of the field study says: a copy of the `summary.json` of `make field`."""

MANY_STEPS = 100_000
CONFIDENCE = 0.95
ROUNDING = 1e-9
NOTHING = "-"


def markdown(heads, rows, align="---:"):
    """The lines of a table; columns after the first are aligned alike."""
    lines = [heads, ["---"] + [align] * (len(heads) - 1), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def published(counts, horizon, reward_max):
    """The paper's bound, without its warnings: the tables show what they warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.AssumptionWarning)
        return cs.value_ceilings(counts, horizon, reward_max, method="paper").values


def logged_counts(world):
    return cs.count([world.collect(name, MANY_STEPS) for name in world.demonstrators])


def held_at_once(repetitions, steps=20_000):
    """Samples of lavacross-easy: how often all ceilings hold at once, with confidence and plug-in; distances."""
    world = cs.load_world("lavacross-easy")
    best, alive = world.model.optimum(world.horizon), ~world.model.terminal
    held, plug_in, distance, vacuous = 0, 0, [], []
    for seed in range(repetitions):
        counts = counted([world.collect(name, steps, seed=seed) for name in world.demonstrators])
        sure = cs.value_ceilings(counts, world.horizon, -0.1, confidence=CONFIDENCE, rarest=0.05)
        gap = (sure.values - best.values)[:, alive]
        actions = (sure.q_values - best.q_values)[:, alive]
        held += bool(gap.min() >= -ROUNDING and actions.min() >= -ROUNDING)
        distance.append(gap.mean())
        vacuous.append((sure.vacuous_values[:, None] - best.values)[:, alive].mean())
        rough = cs.value_ceilings(counts, world.horizon, -0.1)
        plug_in += bool((rough.values - best.values)[:, alive].min() >= -ROUNDING)
    return {
        "held": held / repetitions,
        "plug-in held": plug_in / repetitions,
        "distance": float(np.mean(distance)),
        "vacuous distance": float(np.mean(vacuous)),
    }


def counted(logs, step_indexed=False):
    """Counts of logs in memory, without an engine: for many small samples."""
    parts = []
    for one in logs:
        columns = {name: getattr(one, name) for name in ("state", "action", "next_state", "terminated")}
        columns |= dict.fromkeys(("reward_sum", "reward_min", "reward_max"), one.reward)
        columns |= {"source": np.zeros(len(one)), "n": np.ones(len(one)), "step": one.step if step_indexed else None}
        parts.append(cs.Counts.combined(one.space, [one.source], columns))
    return sum(parts)


def confidence_table(repetitions=400):
    found = held_at_once(repetitions)
    rows = [
        (f"confidence {CONFIDENCE}", f"{found['held']:.1%} of {repetitions}", f"{found['distance']:.4f}"),
        ("plug-in", f"{found['plug-in held']:.1%} of {repetitions}", ""),
        ("no logs (vacuous)", "always", f"{found['vacuous distance']:.4f}"),
    ]
    return markdown(["", "all ceilings hold at once", "mean distance to V*"], rows)


SEEDS = range(20)
BUDGETS = {"windy-empty": 100_000}
BUDGET = 20_000


def field_table(study):
    """What `studies.field.fitted` keeps of a study: tables in Markdown."""
    module = importlib.import_module(f"studies.field.fitted.{study}")
    return module.tables(parts.figures(STUDIES / "field" / "fitted" / "figures" / f"{study}.json", module.VERSION))


def study_table(*names):
    """Tables of the field study."""
    lines = [f"Version {FIELD['version']}, {' to '.join(dict.fromkeys(FIELD['dates']))}.", ""]
    for name in names:
        table = FIELD["tables"][name]
        rows = [[cell.replace("\n", "<br>") for cell in row] for row in table["rows"]]
        lines += [f"**{table['title']}.** {table['caption']}", "", *markdown(table["columns"], rows, "---")]
    return lines


def in_families(methods, families, cell):
    """Rows of titles and methods, with a cell for each family of the field study."""
    found = [{row[0]: row for row in FIELD["tables"][f"family-{name}"]["rows"]} for name in families]
    return [[title, *(cell(rows[key]) if key in rows else NOTHING for rows in found)] for title, key in methods]


def study_rivals():
    """All methods in the three families with learners: mean regret over that without logs, and the worst decile."""
    families = {"random": "200 random worlds", "problems": "standard problems", "sepsis": "ICU-Sepsis"}
    methods = [(row[0], row[0]) for row in FIELD["tables"]["family-random"]["rows"]]
    rows = in_families(methods, families, lambda row: f"{row[1].split(' ')[0]}, {row[2]}")
    return markdown(["", *families.values()], rows)


@cache
def demo():
    """What the demo prints, and the same as values; it runs twice, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "causal_shaping", "demo"]
        run = partial(subprocess.run, cwd=folder, check=True, capture_output=True, text=True)
        return run(command).stdout, json.loads(run([*command, "--json"]).stdout)


def demo_lead():
    """Why logs mislead, in the numbers of the demo."""
    shares = demo()[1]["right_beside_lava"]
    logs, agent = 100 * shares["in_logs"], 100 * shares["for_agent"]
    text = (
        "Some operators of a rover press `right` beside lava only while the air is calm. In their logs, which omit the "
        f"wind, `right` succeeds there {logs:.0f} times in 100. For an agent that cannot feel the wind, it succeeds "
        f"{agent:.0f} times. The wind is a hidden cause of both the move and its outcome, so values estimated from the "
        "logs mislead."
    )
    return [*textwrap.wrap(text, 118), ""]


def demo_end():
    """The last ten lines of the demo."""
    lines = [line.rstrip() for line in demo()[0].splitlines()]
    return ["```text", *lines[-10:], "```", ""]


def readme_agent():
    """What the README's example prints."""
    readme = (HERE.parent / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", readme, flags=re.DOTALL)[1]
    world = cs.load_world("lavacross-easy")
    best = world.model.optimum(horizon=world.horizon).values[0] @ world.model.start
    with tempfile.TemporaryDirectory() as folder:
        run = partial(subprocess.run, cwd=folder, check=True, capture_output=True, text=True)
        run([sys.executable, "-m", "causal_shaping", "demo"])
        without, shaped = map(float, run([sys.executable, "-W", "ignore", "-c", code]).stdout.split())
    return [
        f"It prints mean returns: {without:.2f} without logs, {shaped:.2f} with logs (best possible: {best:.2f}).",
        "",
    ]


HELP = {
    "our agent with logs": "Posterior sampling with logs (ours)",
    "posterior sampling, believing the logs": "Logs believed: PSRL from their counts",
    "Q-learning that replays logs": "Logs believed: fitted Q, then replayed half and half",
    "Q-learning without logs": "Optimistic Q-learning, zero potential",
    "Q-learning shaped by our posterior": "Best guess as potential (ours)",
}
"""Rows of the README, and the methods of the field study that they show."""


def study_help():
    """Whether logs help: mean regret over that of our agent without logs, in the families of the field study."""
    families = {"random": "random worlds", "problems": "standard problems", "sepsis": "ICU-Sepsis simulator"}
    rows = in_families(HELP.items(), families, lambda row: row[1].split(" ")[0])
    return markdown(["regret (ours without logs: 1; lower is better)", *families.values()], rows)


def study_words():
    """What the field study found, in a sentence."""
    (_, saved, _), (_, harmed, _), (_, hostile, _), *_ = FIELD["targets"]
    return [
        f"- Regret that logs save posterior sampling, the learner of this package: {saved}.",
        f"- Cases whose logs are not hostile, but do harm (more than 1.1 times the regret without, surely): {harmed}.",
        f"- Regret with hostile logs, set against the truth: {hostile.replace(' over', ' that without logs, over')}.",
        "",
    ]


def study_targets():
    """What was asked of the field study, and what came of it."""
    words = {True: "met", False: "**missed**", None: "not measured"}
    rows = [(asked, found, words[met]) for asked, found, met in FIELD["targets"]]
    return markdown(["asked", "found", ""], rows, "---")


def study_decisions():
    """What to use when, with the evidence of the field study."""
    return markdown(["situation", "least regret", "evidence"], FIELD["decisions"], "---")


def kept(check):
    """The figures that a check of `make calibrate` keeps, by part."""
    return json.loads((STUDIES / "calibration" / "figures" / f"{check}.json").read_text())["parts"]


def posterior_table():
    """Regret of the learner posterior as a share of a zero potential's, from `make calibrate ARGS=posterior`."""
    held = kept("posterior")
    shares = learner.paper_shares(held)
    ways = (learner.LOGS, learner.CONFOUNDED, learner.NO_LOGS)
    rows = []
    for variant in learner.VARIANTS:
        zero = np.mean(held[f"{variant}; {learner.ZERO}"]["regret"])
        found = [shares[f"{variant}; {way}"] for way in ways]
        cells = ["{:.3f} ({:.3f} to {:.3f})".format(*share) + f"; {optimal:.0%}" for share, optimal in found]
        title = variant.removesuffix(", standing").replace(", once", ", coins once")
        rows.append([title, f"{zero:.0f}", *cells])
    words = f"{len(learner.PAPER_SEEDS)} seeds of logs and learner, on which earlier versions of it were measured, too."
    return [*markdown(["", "regret, zero potential", *(f"posterior, {way}" for way in ways)], rows), words, ""]


def hard_table():
    """Regret with misleading logs as a share of that without, from `make calibrate ARGS=hard-worlds`."""
    rows = [
        (kind, "{:.2f} ({:.2f} to {:.2f})".format(*share), f"{decile:.2f}", f"{worst:.2f}")
        for kind, (share, decile, worst) in learner.hard_ratios(kept("hard-worlds")).items()
    ]
    heads = ["logs", "all worlds", "nine of ten worlds are below", "mean of the worst tenth"]
    return [*markdown(heads, rows), f"{learner.WORLDS} worlds of each kind, 3 seeds each, 20,000 steps.", ""]


def speed_table():
    """What `make bench` measured of everything that has a goal."""
    held = json.loads((STUDIES / "speed" / "figures" / "bench.json").read_text())
    rows = [row.cells()[:-1] for row in (Row(**one) for one in held) if row.goal]
    return markdown(["work", "ours", "yardstick", "ratio", "goal", "peak, MB"], rows)


def claims_table():
    """What the page on differences says about the published method, measured again."""
    worlds = [cs.load_world(name) for name in cs.list_worlds() if name != "walking-robot"]
    return markdown(["world", *CLAIMS], [(world.name, *claims_of(world)) for world in worlds])


CLAIMS = (
    "largest distance of the bound from 0",
    "its values, rounded to 0.1",
    "states with tied optimal actions",
    "`up` in Q-UCB's policy",
    "regret with V*, clip phi",
    "regret with V*, clip 0",
    "same, phi = 0",
)


def claims_of(world):
    """The numbers of `CLAIMS` in a world; regrets are means over `SEEDS`."""
    alive, best = ~world.model.terminal, world.model.optimum()
    bound = published(logged_counts(world), world.horizon, 0.0)[0][alive]
    tied = (best.gaps() < NEARLY).sum(axis=1)[alive] > 1
    steps, truth = BUDGETS.get(world.name, BUDGET), cs.Potential(best.values, world.space)
    up = [(cs.train(world, learner="q-ucb", steps=steps, seed=seed).policy == 0)[alive].mean() for seed in SEEDS]

    def regret(potential, **changes):
        runs = [
            cs.train(world, potential, learner="q-ucb-shaping", steps=steps, seed=seed, **changes) for seed in SEEDS
        ]
        return f"{np.mean([run.step_regret[-1] for run in runs]):.0f}"

    return (
        f"{np.abs(bound).max():.3f}",
        f"{len(np.unique(bound.round(1) + 0.0))}",
        f"{tied.sum()}",
        f"{np.mean(up):.0%}",
        regret(truth),
        regret(truth, clip="zero"),
        regret(cs.Potential.zero(world)),
    )


def support_table():
    """Where a ceiling with confidence fails because its support is not credible: the maze whose coins pay once."""
    world = cs.load_world("lavacross-maze", coins="once")
    best, alive = world.model.optimum(world.horizon).values, ~world.model.terminal
    counts = [counted([world.collect(name, MANY_STEPS, seed) for name in world.demonstrators]) for seed in SEEDS]
    rows = []
    for rarest in (0.5, 0.1, 0.05, 0.02, 0.01):
        options = {"confidence": CONFIDENCE, "rarest": rarest}
        found = [cs.value_ceilings(one, world.horizon, 0.1, **options).values for one in counts]
        lowest = np.array([(values - best)[:, alive].min() for values in found])
        worst = max(0.0, -lowest.min()) if (lowest < -ROUNDING).any() else 0.0
        rows.append((f"{rarest}", f"{(lowest < -ROUNDING).sum()} of {len(found)}", f"{worst:.3f}"))
    return markdown(["`rarest`", "sets of logs with a ceiling below V*", "by at most"], rows)


def maze_table(seeds=range(6)):
    """Variants that might make shaping with the largest behaviour value score 0.33 in the maze, as printed."""
    world = cs.load_world("lavacross-maze")

    def ratio(log_steps=MANY_STEPS, rounded=False, without="", budget=BUDGET, **options):
        found = []
        for seed in seeds:
            logs = [world.collect(name, log_steps, seed) for name in world.demonstrators if name != without]
            phi = behaviour_potential(logs, combine="max")
            phi = cs.Potential(phi.values.round(1), phi.space) if rounded else phi
            run = cs.train(world, phi, learner="q-ucb-shaping", steps=budget, seed=seed, **options)
            found.append(optimal_ratios(world.model, run.policy)[0])
        return f"{np.mean(found):.2f}"

    variants = {
        "as interpreted here": ratio(),
        "potential rounded to 0.1": ratio(rounded=True),
        "budget in episodes": ratio(budget=BUDGET * world.horizon, episodes=BUDGET),
        "the time limit treated as termination": ratio(time_limit="terminal"),
        "logs of 1,000 steps": ratio(1_000),
        "c = 1": ratio(c=1.0),
        "c = 8": ratio(c=8.0),
        **{f"without `{name}`": ratio(without=name) for name in world.demonstrators},
    }
    return markdown(["max value in lavacross-maze", "argmax match"], variants.items())


def theory_table(name, worlds=None):
    """One of the report's tables on theory, for all worlds."""
    tables = theory_tables(cs.list_worlds() if worlds is None else worlds)
    table = next(table for table in tables if table.name == name)
    lines = [[cell.replace("\n", ", ") for cell in line] for line in (table.columns, *table.rows)]
    return markdown(lines[0], lines[1:], "---")


def parts_table(episodes=1e13):
    """The parts of the corrected bound where it is not vacuous."""
    rows = []
    for name in cs.list_worlds():
        world = cs.load_world(name)
        for potential, phi in usual_potentials(world).items():
            shaped = Shaped(world.model, phi, world.horizon)
            if shaped.optimism().holds.all():
                bound = regret_bound(shaped, episodes)
                shares = (bound.settled, bound.unsettled, bound.optimal)
                cells = [f"{share / bound.total:.1%}" for share in shares]
                rows.append([name, potential, f"{bound.total:.2g}", *cells])
    return markdown(["world", "potential", "bound", "settled", "other suboptimal", "optimal actions"], rows)


STUDIED = ("confounding", "family-random", "family-problems", "family-sepsis", "claims", "clinic")

TABLES = {
    "../README.md": {"lead": demo_lead, "demo": demo_end, "agent": readme_agent, "help": study_help},
    "index.md": {"lead": demo_lead},
    "evidence.md": {"field": study_words, "rivals": study_rivals},
    "learners.md": {"posterior": posterior_table, "hard": hard_table, "potentials": potentials.table},
    "ceilings.md": {"confidence": confidence_table},
    "differences.md": {"support": support_table, "claims": claims_table},
    "../studies/paper/README.md": {"maze": maze_table},
    "../studies/speed/README.md": {"speed": speed_table},
    "field.md": {"decisions": study_decisions},
    "../studies/field/README.md": {
        "targets": study_targets,
        "study": partial(study_table, *STUDIED),
    },
    "../studies/field/fitted.md": {name: partial(field_table, name) for name in ("bounds", "agents")},
    "../studies/paper/theory.md": {
        "corrections": partial(theory_table, "theory-corrections"),
        "bounds": partial(theory_table, "theory-bounds"),
        "parts": parts_table,
        "events": partial(theory_table, "theory-events"),
        "contraction": partial(theory_table, "theory-contraction"),
    },
}


def replaced(text, name, lines, *, short=False):
    """The text with one table replaced; `short` leaves no empty lines around it."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    place = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if not place.search(text):
        raise ValueError(f"There is no place for the table {name!r}.")
    held = lines[:-1] if short else ["", *lines]
    return place.sub(lambda _: "\n".join([begin, *held, end]), text)


def main():
    for page, tables in TABLES.items():
        text = (HERE / page).read_text()
        for name, make in tables.items():
            print(f"{page}: {name}")
            text = replaced(text, name, make(), short=page == "../README.md")
        with replacing(HERE / page, [".md"]) as temporary:
            temporary.write_text(text)


if __name__ == "__main__":
    main()
