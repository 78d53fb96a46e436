"""This backend keeps the contract: the whole suite."""

from threadkeep_conformance.suite import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]  (pytest collects the classes)
