"""What `causal-shaping demo` shows: logs that mislead, what they prove, and what that saves.

- `rover`: the world, the operators, and their CSV files.
- `agents`: three agents that differ only in what they do with the files.
- `page`: one HTML page of it all (extra `plot`).
"""
