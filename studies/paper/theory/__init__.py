"""The paper's definitions, lemmas and theorems as functions, with corrections where the printed ones are false.

- `learning_rates`, `clip`, `clip_lemma`, `clipped_sum`, `log_term`, `deviation`: the small lemmas.
- `Shaped`, `conservative_optimism`: a model under a potential; Sub_Delta, and the actions that a potential settles.
- `watch`, `proven_rule`: runs in which every inequality of the analysis is checked.
- `visit_bound`, `printed_regret_bound`, `regret_bound`, `useful_from`, `q_ucb`: bounds on visits and regret.
- `CausalBellman`, `contraction`, `expected_times`: the causal Bellman operator.
- `corrections`: false statements with counterexamples, and the corrected ones.
- `examine`, `usual_potentials`: all of this for one world.

`printing` prints an examination, `picture` draws the bounds (extra `paper`). The proofs are in `docs/theory.md`.
"""

from studies.paper.theory.contraction import CausalBellman, Contraction, contraction, expected_times
from studies.paper.theory.corrections import Correction, corrections
from studies.paper.theory.events import Watched, proven_rule, watch
from studies.paper.theory.examination import Examination, examine, usual_potentials
from studies.paper.theory.lemmas import clip, clip_lemma, clipped_sum, deviation, learning_rates, log_term
from studies.paper.theory.regret import (
    RegretBound,
    printed_regret_bound,
    q_ucb,
    regret_bound,
    useful_from,
    visit_bound,
)
from studies.paper.theory.shaped import Optimism, Shaped, conservative_optimism

__all__ = [
    "CausalBellman",
    "Contraction",
    "Correction",
    "Examination",
    "Optimism",
    "RegretBound",
    "Shaped",
    "Watched",
    "clip",
    "clip_lemma",
    "clipped_sum",
    "conservative_optimism",
    "contraction",
    "corrections",
    "deviation",
    "examine",
    "expected_times",
    "learning_rates",
    "log_term",
    "printed_regret_bound",
    "proven_rule",
    "q_ucb",
    "regret_bound",
    "useful_from",
    "usual_potentials",
    "visit_bound",
    "watch",
]
