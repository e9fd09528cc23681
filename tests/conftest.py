"""Settings for the whole suite."""

import os

from hypothesis import settings

os.environ["SDL_VIDEODRIVER"] = "dummy"  # windows without a screen
os.environ["MPLBACKEND"] = "agg"

# Examples are the same on every run, so a red suite stays red until the code changes.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=200, database=None)
settings.register_profile("long", deadline=None, max_examples=5_000, database=None)  # make validate
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
