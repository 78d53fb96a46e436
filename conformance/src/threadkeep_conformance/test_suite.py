"""The whole suite, for ``pytest --threadkeep-url=URL --pyargs threadkeep_conformance``."""

from .suite import *  # noqa: F403  (pytest collects the suite's classes)
