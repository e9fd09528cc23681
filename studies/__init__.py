"""Programs that measure: the paper's study, the field study, checks that take hours, speed. Not part of the package.

They run from a checkout: `make reproduce`, `make field`, `make calibrate`, `make bench`, `make tables`. Their figures
are kept beside them; what they need besides the package is the extra `studies`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = str(ROOT / "tests")

if TESTS not in sys.path:
    sys.path.append(TESTS)  # worlds and independent computations that the test suite uses, too
