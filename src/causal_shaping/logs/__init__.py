"""Opening, checking and counting logs on an engine."""

from causal_shaping.logs.check import check_logs
from causal_shaping.logs.counting import count
from causal_shaping.logs.opening import open_logs, read_logs
from causal_shaping.logs.table import LogTable
from causal_shaping.logs.transitions import read_transitions

__all__ = ["LogTable", "check_logs", "count", "open_logs", "read_logs", "read_transitions"]
