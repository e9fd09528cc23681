"""The field study: random worlds, standard problems, real data, and what people would use instead (extra `paper`).

It stands beside `studies.paper` and shares its machinery (`paper._parts`), since it is run, resumed and reported in the
same way, and only researchers need it.

- `plan`: what to run, as data; `run.run_field`: run it; `page.write_page`: write its page.
"""

from causal_shaping._extras import needs_extra

with needs_extra("The field study and its page", "studies"):  # at once, before anything is computed
    import jinja2  # noqa: F401
    import joblib  # noqa: F401
    import matplotlib  # noqa: F401
