"""Packages that hold the data of families: their files are read, and nothing is imported."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from causal_shaping.errors import CausalShapingError

INSTALL: Mapping[str, str] = {
    "icu-sepsis": "pip install --no-deps icu-sepsis==2.0.1",  # it asks for gym, which nothing here needs
    "causaldata": "pip install causaldata pandas",
}
"""What installs each package."""


class MissingPackageError(CausalShapingError, ImportError):
    """A package that holds the data of a family and is not installed; the message says how to."""


def package_folder(name: str) -> Path:
    """Return the folder of a package, or say how to install it."""
    try:
        held = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise MissingPackageError(f"{name} is not installed. Install it: {INSTALL[name]}") from error
    # Not by import: a script of the same name, which is run, would be found in place of the package.
    return Path(str(held.locate_file(name.replace("-", "_"))))
