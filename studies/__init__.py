"""Programs that measure: they use the package, and are no part of it."""
