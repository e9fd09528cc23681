"""Translate a query to SQL once, however many files it is asked of.

Ibis takes longer to translate a query than DuckDB to answer it for a small file, and the same queries are asked of
every file with the same columns. What tells them apart is all that the expression is made of, except for the engine:
tables by name and types, literals, operations. Of that only a hash is kept, so that no engine is kept alive.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import Any

import ibis
import ibis.expr.operations as ops
from ibis.backends import BaseBackend
from ibis.expr.operations.udf import InputType

MAX_QUERIES = 512
"""So many translations are kept."""

_translations: dict[bytes, str] = {}


def sql_of(expression: ibis.Table, backend: Any) -> str:
    """Return the SQL of a query, with everything in the backend that it needs to run."""
    key = key_of(expression)
    if key in _translations:
        return _translations[key]
    backend._run_pre_execute_hooks(expression)
    sql = str(backend.compile(expression))
    if key is not None:
        if len(_translations) >= MAX_QUERIES:
            _translations.clear()
        _translations[key] = sql
    return sql


def key_of(expression: ibis.Table) -> bytes | None:
    """Return a hash that only the same query over tables of the same names and types has; None if there is none.

    Queries have none that need more of an engine than its tables: data in memory, functions written in Python.
    """
    parts = io.BytesIO()
    try:
        _Parts(parts, pickle.HIGHEST_PROTOCOL).dump(expression.op())
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError):
        return None
    return hashlib.sha256(parts.getbuffer()).digest()


class _Parts(pickle.Pickler):
    """Write down what an expression is made of, except for its engine."""

    def reducer_override(self, part: Any) -> Any:
        if isinstance(part, BaseBackend):
            return str, ("the engine",)
        if isinstance(part, ops.InMemoryTable):
            raise pickle.PicklingError("its rows are data")
        if isinstance(part, type) and getattr(part, "__input_type__", None) is InputType.BUILTIN:
            return str, (part.__name__,)  # a function that engines have; Ibis gives each a name of its own
        return NotImplemented
