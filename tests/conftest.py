"""Settings for the whole suite."""

import gc
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # processes run side by side; before NumPy is imported
    os.environ.setdefault(name, "1")

from compiling import share_compilation  # noqa: E402
from hypothesis import settings  # noqa: E402

if "PYTEST_XDIST_WORKER" in os.environ:
    share_compilation()

os.environ["SDL_VIDEODRIVER"] = "dummy"  # windows without a screen
os.environ["MPLBACKEND"] = "agg"

# Examples are the same on every run, so a red suite stays red until the code changes.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=60, database=None)
settings.register_profile("long", deadline=None, max_examples=5_000, database=None)  # make calibrate
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_collection_finish():
    """Let the garbage collector pass over what was imported: it would look at half a million objects each time."""
    gc.collect()
    gc.freeze()
