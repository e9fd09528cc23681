"""What is false in print is false here, and what is said instead is true."""

import pytest

from studies.paper.theory.corrections import corrections


@pytest.fixture(scope="module")
def found():
    return list(corrections())


def test_the_printed_statements_fail_and_the_corrected_ones_hold(found):
    assert len({(one.statement, one.quantity) for one in found}) == len(found) == 14
    for one in found:
        value, claimed = one.found
        assert value > claimed + 1e-6, one.statement
        value, claimed = one.true_found
        assert value <= claimed + 1e-9, one.statement
