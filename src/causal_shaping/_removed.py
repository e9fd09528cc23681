"""Names and commands of version 0.2 that are gone, each with what replaces it.

`docs/from-0.2-to-0.3.md` lists them for readers; a test compares the two.
"""

from __future__ import annotations

import sys

REMOVED: dict[str, str] = {}
"""A name or module, without `causal_shaping.`, to one sentence: its replacement, or the last version that has it."""

MOVED = "is no longer part of the package but of the studies in the repository: run"

REMOVED_COMMANDS = {
    "reproduce": f"{MOVED} `make reproduce` there.",
    "field": f"{MOVED} `make field` there.",
    "theory": f"{MOVED} `python -m studies.paper.theory` there.",
    "diagram": f"{MOVED} `python -m studies.paper.diagram` there.",
}
"""A command to the end of the sentence "causal-shaping COMMAND ..."."""


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
