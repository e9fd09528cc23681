"""Names and commands of version 0.2 that are gone, each with what replaces it.

`docs/from-0.2-to-0.3.md` lists them for readers; a test compares the two.
"""

from __future__ import annotations

import sys

EPISODES = (
    "Bounds of whole episodes are a program now, studies/calibration/episodes.py; 0.2.0 is the last version with {}."
)
SUMS = "Counts add up, `counts + cs.count(more)`, and do not list their parts: cs.{} is gone."
REMOVED: dict[str, str] = {
    **{name: SUMS.format(name) for name in ("update_counts", "counted_parts", "CountsUpdate", "Part")},
    "episode_ceilings": EPISODES.format("cs.episode_ceilings"),
    "EpisodeCeilings": EPISODES.format("cs.EpisodeCeilings"),
    "bounds.episode_ceilings": EPISODES.format("causal_shaping.bounds.episode_ceilings"),
    "bounds.EpisodeCeilings": EPISODES.format("causal_shaping.bounds.EpisodeCeilings"),
    "logs.update_counts": SUMS.format("update_counts"),
    "bounds.episodes": EPISODES.format("causal_shaping.bounds.episodes"),
    "paper": "The paper's study, theory and baselines are programs in studies/paper of the repository now.",
    "io": "Results are saved and loaded by themselves; what files have in common is in causal_shaping.storage now.",
    "export_minari": "Minari data sets are read only: logs.save('logs.parquet') writes a file that any tool can open.",
}
"""A name or module, without `causal_shaping.`, to one sentence: its replacement, or the last version that has it."""

STUDIES = "no longer part of the package but of the studies in the repository: run {} there."
REMOVED_COMMANDS = {
    "reproduce": STUDIES.format("make reproduce"),
    "field": STUDIES.format("make field"),
    "theory": STUDIES.format("python -m studies.paper.theory"),
    "diagram": STUDIES.format("python -m studies.paper.diagram"),
    "episode-ceilings": STUDIES.format("python -m studies.calibration.episodes"),
    "count": "gone: causal-shaping ceilings writes counts with --counts, and in Python counts add up.",
}
"""A command to what is said of it: that it is gone or a program in `studies/`, and what to run instead."""


class RemovedFinder:
    """The last finder of imports: explains `import causal_shaping.NAME` and `from causal_shaping import NAME`.

    Python drops the message of an AttributeError in `from causal_shaping import NAME`, but looks for a module of that
    name before it gives up.
    """

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        """Raise an ImportError for what was removed; leave everything else to Python."""
        package, _, name = fullname.partition(".")
        if package == "causal_shaping" and name in REMOVED:
            raise ImportError(REMOVED[name], name=fullname)


def explain_removed_names() -> None:
    """Let imports of removed names say what replaces them."""
    sys.meta_path.append(RemovedFinder)
