"""Frozen results are those of version 0.2, entry by entry; `golden.py` says how they were made."""

import golden
import numpy as np
import pytest


@pytest.mark.parametrize("kind", golden.FROZEN)
def test_frozen_results_are_unchanged(kind):
    compared, _, differing = golden.compare_frozen(kind)
    assert differing == []
    assert compared > 100


def test_a_change_of_one_number_is_noticed(monkeypatch):
    changed = golden.read("coverage")
    key = next(iter(changed))
    changed[key] = changed[key] * (1 + 3e-9) + 3e-9
    monkeypatch.setattr(golden, "frozen", lambda kind, worlds: changed)
    _, largest, differing = golden.compare_frozen("coverage")
    assert [line.split(" differs")[0] for line in differing] == [key]
    assert largest > golden.TOLERANCE


def test_a_missing_and_a_new_entry_are_noticed(monkeypatch):
    changed = golden.read("coverage")
    key, *_ = changed
    changed["a new one"] = changed.pop(key)
    monkeypatch.setattr(golden, "frozen", lambda kind, worlds: changed)
    assert golden.compare_frozen("coverage")[2] == sorted([f"{key} is missing", "a new one is new"])


def test_infinite_and_missing_numbers_are_compared():
    odd = np.array([np.inf, -np.inf, np.nan])
    assert golden.difference(odd, odd) == 0
    assert golden.difference(odd, odd[::-1]) == np.inf
    assert golden.difference(np.zeros(2), np.zeros(3)) == np.inf
