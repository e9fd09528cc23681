"""The field study: random worlds, standard problems, real data, and what people would use instead (extra `paper`).

It stands beside `studies.paper` and is run, resumed and reported in the same way (`studies.parts`).

- `plan`: what to run, as data; `run.run_field`: run it; `page.write_page`: write its page.
"""

from causal_shaping._extras import needs_extra

with needs_extra("The field study and its page", "studies"):  # at once, before anything is computed
    import jinja2  # noqa: F401
    import matplotlib  # noqa: F401
