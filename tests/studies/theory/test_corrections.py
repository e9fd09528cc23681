"""What is false in print is false here, and what is said instead is true."""

import pytest

from studies.paper.theory.corrections import COUNTEREXAMPLES, corrections


@pytest.mark.parametrize("make", COUNTEREXAMPLES, ids=lambda make: make.__name__)
def test_the_printed_statement_fails_and_the_corrected_one_holds(make):
    found = make()
    assert found.found > found.printed + 1e-6
    assert found.true_found <= found.true_bound + 1e-9


def test_every_correction_is_told_once():
    statements = [(one.statement, one.quantity) for one in corrections()]
    assert len(set(statements)) == len(COUNTEREXAMPLES) == len(statements)
