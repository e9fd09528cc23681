"""Files: written completely or not at all, with their kind, version, checksum and labels inside.

- `files`: atomic writing of anything, of text, and of tables for other programs (.csv, .parquet).
- `container`: one save and one load for what this package reads back; kind, version and checksum are checked there.
- `labels`, `by_state`: labels in columns.
- `convert`: logs, counts and potentials to and from the container.
- `minari`: data sets in Minari's format.
"""
