"""From files and tables to counts: opening, checking and counting logs where they are.

- `finding`, `engine`, `csv_types`, `minari`: where the rows are, and how DuckDB reads them.
- `raw`, `labels`, `numbers`, `next_states`, `opening`: a user's columns as one schema, `table`.
- `check`, `counting`, `summary`, `transitions`: what is asked of the rows; `queries` asks it.
"""

from causal_shaping.logs.check import check_logs
from causal_shaping.logs.counting import count
from causal_shaping.logs.opening import open_logs, read_logs
from causal_shaping.logs.table import LogTable
from causal_shaping.logs.transitions import read_transitions

__all__ = ["LogTable", "check_logs", "count", "open_logs", "read_logs", "read_transitions"]
