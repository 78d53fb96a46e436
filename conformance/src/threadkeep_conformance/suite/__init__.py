"""The suite: import its classes into one test file of an adapter (``from threadkeep_conformance.suite
import *``).
"""

from . import (
    archive,
    batches,
    capabilities,
    changes,
    clones,
    concurrency,
    content,
    cursors,
    errors,
    explain,
    faults,
    filters,
    growth,
    includes,
    lifecycle,
    merges,
    messages,
    model,
    operators,
    pagination,
    pushdown,
    resources,
    strings,
    tenancy,
    threads,
    times,
    walks,
)
from .archive import *  # noqa: F403  (the area's classes)
from .batches import *  # noqa: F403  (the area's classes)
from .capabilities import *  # noqa: F403  (the area's classes)
from .changes import *  # noqa: F403  (the area's classes)
from .clones import *  # noqa: F403  (the area's classes)
from .concurrency import *  # noqa: F403  (the area's classes)
from .content import *  # noqa: F403  (the area's classes)
from .cursors import *  # noqa: F403  (the area's classes)
from .errors import *  # noqa: F403  (the area's classes)
from .explain import *  # noqa: F403  (the area's classes)
from .faults import *  # noqa: F403  (the area's classes)
from .filters import *  # noqa: F403  (the area's classes)
from .growth import *  # noqa: F403  (the area's classes)
from .includes import *  # noqa: F403  (the area's classes)
from .lifecycle import *  # noqa: F403  (the area's classes)
from .merges import *  # noqa: F403  (the area's classes)
from .messages import *  # noqa: F403  (the area's classes)
from .model import *  # noqa: F403  (the area's classes)
from .operators import *  # noqa: F403  (the area's classes)
from .pagination import *  # noqa: F403  (the area's classes)
from .pushdown import *  # noqa: F403  (the area's classes)
from .resources import *  # noqa: F403  (the area's classes)
from .strings import *  # noqa: F403  (the area's classes)
from .tenancy import *  # noqa: F403  (the area's classes)
from .threads import *  # noqa: F403  (the area's classes)
from .times import *  # noqa: F403  (the area's classes)
from .walks import *  # noqa: F403  (the area's classes)

_AREAS = (
    archive,
    batches,
    capabilities,
    changes,
    clones,
    concurrency,
    content,
    cursors,
    errors,
    explain,
    faults,
    filters,
    growth,
    includes,
    lifecycle,
    merges,
    messages,
    model,
    operators,
    pagination,
    pushdown,
    resources,
    strings,
    tenancy,
    threads,
    times,
    walks,
)

__all__ = [name for area in _AREAS for name in area.__all__]  # pyright: ignore[reportUnsupportedDunderAll]  (each area has its own)
