"""What logs cost or save the learner `posterior`: in worlds that nobody tuned, hostile ones too, and the paper's.

Worlds and seeds are none that anybody chose by.

- `run_hard`: regret over the mean gap of a world (`studies/worlds/hard.py`), with misleading logs and without.
- `run_bandits`: whether a run with one step keeps to a worse action.
- `run_paper`: regret at the paper's budgets, as a share of that of a potential of zero.
"""

import numpy as np

import causal_shaping as cs
from causal_shaping.learners.intervals import bootstrap_interval
from causal_shaping.learners.seeds import optimal_ratios
from studies.paper.materials import Materials
from studies.paper.plan import BUDGETS, LOG_STEPS, WORLDS as PAPER_WORLDS
from studies.statistics import ratio_of_means
from studies.worlds import hard

STEPS, SEEDS, LOG_SEED = 20_000, range(700, 703), 300
WORLDS, PER_PART, FIRST_WORLD = 100, 25, 10_000

NO_LOGS = "no logs"
LIMITS = {
    "random": 0.7,
    "erratic": None,  # not promised
    "hostile": 1.1,
    "partly hostile": 0.9,
    "slander": 1.2,
    "slander, second unconfounded": 1.5,
}
"""The most regret with logs, as a share of that without."""

WORST_DECILE = 1.5
"""The most that nine worlds of ten have, as a share of the same world without logs."""

HARD_PARTS = [f"{kind}; {at}-{at + PER_PART - 1}" for at in range(0, WORLDS, PER_PART) for kind in (NO_LOGS, *LIMITS)]


def run_hard(part):
    """Return the regret in each world of a part, the mean of three seeds."""
    kind, worlds = part.split("; ")
    first, last = map(int, worlds.split("-"))
    regret = []
    for seed in range(FIRST_WORLD + first, FIRST_WORLD + last + 1):
        world = hard.KINDS["random" if kind == NO_LOGS else kind](seed)
        belief = None
        if kind != NO_LOGS:
            counts = hard.counts_of(world, seed=LOG_SEED)
            belief = cs.posterior(counts, horizon=world.horizon, reward_max=max(hard.REWARDS))
        runs = [cs.train(world, belief, learner="posterior", steps=STEPS, seed=own) for own in SEEDS]
        regret.append(float(np.mean([run.step_regret[-1] for run in runs]) / hard.mean_gap(world)))
    return {"regret": regret}


def hard_ratios(parts):
    """Return regret as a share of that without logs, by kind: an interval, the ninth decile, the worst tenth."""

    def regret(kind):
        return np.concatenate([figures["regret"] for part, figures in parts.items() if part.startswith(f"{kind};")])

    without, found = regret(NO_LOGS), {}
    for kind in LIMITS:
        each = np.sort(regret(kind) / without)
        share = bootstrap_interval(ratio_of_means, regret(kind), without, paired=True)
        found[kind] = share, float(np.quantile(each, 0.9)), float(each[-max(1, len(each) // 10) :].mean())
    return found


def hard_holds(parts):
    """Confounded logs save regret in random worlds and cost little in hostile ones."""
    found = hard_ratios(parts)
    for kind, (share, decile, worst) in found.items():
        print(f"  {kind}: {share[0]:.2f} of no logs; nine of ten below {decile:.2f}, the worst tenth {worst:.2f}")
    return all(found[kind][0][0] <= most and found[kind][1] <= WORST_DECILE for kind, most in LIMITS.items() if most)


# Bandits -------------------------------------------------------------------------------------------------------------

BANDITS, SCALES, ARMS = 1_000, (0.01, 1.0, 100.0), (2, 3, 5)
SHOWN = {"no logs": [], "slander": ["slander"], "flatter": ["flatter"], "both": ["slander", "flatter"]}
"""Without logs, with those of either demonstrator, and with both."""
LOCKED_IN = 0.01
"""A run is locked in if it takes the best action in fewer of its steps."""

BANDIT_PARTS = [f"{at}-{at + BANDITS // 4 - 1}" for at in range(0, BANDITS, BANDITS // 4)]


def run_bandits(part):
    """Return how many runs were locked in."""
    found = {"runs": 0, "locked in": dict.fromkeys(SHOWN, 0), "least share": 1.0}
    first, last = map(int, part.split("-"))
    for i in range(first, last + 1):
        scale, arms = SCALES[i % len(SCALES)], ARMS[i // len(SCALES) % len(ARMS)]
        world = hard.bandit(FIRST_WORLD + i, scale, arms)
        way = list(SHOWN)[i % len(SHOWN)]
        belief = None
        if SHOWN[way]:
            counts = hard.counts_of(world, seed=LOG_SEED, sources=SHOWN[way])
            belief = cs.posterior(counts, horizon=1, reward_max=2 * scale)
        run = cs.train(world, belief, learner="posterior", steps=STEPS, seed=i)
        share = run.visits[0, hard.order_of(world.model)[0, 0]] / STEPS
        found["runs"] += 1
        found["locked in"][way] += bool(share < LOCKED_IN)
        found["least share"] = min(found["least share"], float(share))
    return found


def bandits_hold(parts):
    """None of 1,000 runs with one step, at three scales of rewards, keeps to a worse action."""
    return not any(sum(part["locked in"].values()) for part in parts.values())


# The paper's worlds --------------------------------------------------------------------------------------------------

PAPER_SEEDS = range(500, 510)
"""Each that of the logs and of the learner."""

ZERO, LOGS, CONFOUNDED = "zero potential", "logs", "without the blind source"
LIMIT, ONCE_LIMIT, CONFOUNDED_LIMIT = 0.08, 0.2, 0.3
"""The most regret with logs, as a share of a zero potential's: with standing coins, with coins that pay once, and
without the source that does not look at the wind."""

ONCE = ("lavacross-hard", "lavacross-maze")
"""Where `ONCE_LIMIT` is promised."""

OPTIMAL = 0.95
"""The share of states whose recommended action is truly optimal, with logs and standing coins."""

VARIANTS = [f"{world}, standing" for world in PAPER_WORLDS] + [f"{world}, once" for world in ONCE]
VARIANTS.sort(key=lambda variant: variant.startswith("windy-empty"))  # the longest comes last
PAPER_PARTS = [f"{variant}; {way}" for variant in VARIANTS for way in (ZERO, LOGS, CONFOUNDED, NO_LOGS)]


def run_paper(part):
    """Return regret and the share of states with a truly optimal action, seed by seed."""
    variant, way = part.split("; ")
    name, coins = variant.split(", ")
    world = cs.load_world(name, coins=coins)
    regret, optimal = [], []
    for seed in PAPER_SEEDS:
        start = cs.Potential.zero(world) if way == ZERO else None
        if way in (LOGS, CONFOUNDED):
            kind = "posterior" if way == LOGS else "posterior-confounded"
            start = Materials(world, LOG_STEPS, seed).belief(kind)
        learner = "q-ucb-shaping" if way == ZERO else "posterior"
        run = cs.train(world, start, learner=learner, steps=BUDGETS[name], seed=seed)
        regret.append(float(run.step_regret[-1]))
        optimal.append(optimal_ratios(world.model, run.recommended)[1])
    return {"regret": regret, "optimal": optimal}


def paper_shares(parts):
    """Return regret as a share of a zero potential's, with its interval, by part, and the share of optimal actions."""
    found = {}
    for part, figures in parts.items():
        variant, way = part.split("; ")
        if way != ZERO:
            pair = np.array(figures["regret"]), np.array(parts[f"{variant}; {ZERO}"]["regret"])
            share = bootstrap_interval(ratio_of_means, *pair, paired=True)
            found[part] = share, float(np.mean(figures["optimal"]))
    return found


def limit_of(variant, way):
    """Return the most regret that is promised, as a share of a zero potential's; None for no promise."""
    world, coins = variant.split(", ")
    if way == LOGS:
        return LIMIT if coins == "standing" else ONCE_LIMIT
    if way == CONFOUNDED and coins == "standing" and world != "windy-empty":
        return CONFOUNDED_LIMIT
    return None


def paper_holds(parts):
    """In the paper's worlds the learner posterior has a small share of the regret of a zero potential."""
    held = True
    for part, (share, optimal) in paper_shares(parts).items():
        variant, way = part.split("; ")
        limit = limit_of(variant, way)
        fine = limit is None or share[0] <= limit
        if way == LOGS and variant.endswith("standing"):
            fine &= optimal >= OPTIMAL
        words = "{:.3f} ({:.3f} to {:.3f}) of a zero potential's regret".format(*share)
        print(f"  {part}: {words}; {optimal:.1%} of states with an optimal action{'' if fine else '. NOT AS PROMISED'}")
        held &= fine
    return held
