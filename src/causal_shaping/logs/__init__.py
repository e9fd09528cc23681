"""Reading, checking, counting and writing logs."""

from causal_shaping.logs.check import DroppedEpisodes, check_logs
from causal_shaping.logs.counting import count
from causal_shaping.logs.minari import export_minari
from causal_shaping.logs.opening import open_logs, read_logs
from causal_shaping.logs.parquet import read_counts, write_counts, write_logs
from causal_shaping.logs.table import LogTable

__all__ = [
    "DroppedEpisodes",
    "LogTable",
    "check_logs",
    "count",
    "export_minari",
    "open_logs",
    "read_counts",
    "read_logs",
    "write_counts",
    "write_logs",
]
