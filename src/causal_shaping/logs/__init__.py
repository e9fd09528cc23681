"""Reading and writing logs."""

from causal_shaping.logs.parquet import write_logs

__all__ = ["write_logs"]
