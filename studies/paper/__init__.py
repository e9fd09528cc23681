"""The study: the paper's experiments, rerun, corrected and extended (extra `paper`).

- `Plan`, `METHODS`: what to run.
- `run.run_study`: run it; `report.write_report`: write its report.
"""

from causal_shaping._extras import needs_extra
from studies.paper.plan import METHODS, Plan

with needs_extra("The study and its report", "studies"):  # at once, before anything is computed
    import jinja2  # noqa: F401
    import matplotlib  # noqa: F401

__all__ = ["METHODS", "Plan"]
