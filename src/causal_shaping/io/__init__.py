"""Files: replaced as a whole or not at all, with a checksum that is verified when they are loaded.

- `files`: writing anything so that nothing is lost; folders that one process works in at a time.
- `inputs`: opening what a user names; checksums, JSON and arrays.
- `container`: one save and one load for what this package reads back, with kind and version.
- `labels`, `by_state`: labels in columns.
- `convert`: logs, counts and potentials to and from the container.
- `minari`: data sets in Minari's format.
"""
