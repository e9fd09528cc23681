"""The paper's definitions, lemmas and theorems as functions, with corrections where the printed ones are false.

- `lemmas`: learning rates, the clip function, clipped sums, the radius of concentration.
- `shaped`: a model under a potential: conservative optimism, Sub_Delta, the actions that a potential settles.
- `events`: runs in which every inequality of the analysis is checked.
- `regret`: bounds on visits and regret.
- `contraction`: the causal Bellman operator.
- `corrections`: false statements with counterexamples, and the corrected ones.
- `examination`: all of this for one world; `picture` draws the bounds.

The proofs are in `studies/paper/theory.md`.
"""
