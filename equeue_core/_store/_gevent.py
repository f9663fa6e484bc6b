"""What gevent's monkey-patching replaced or removed in the standard library.

Whoever waits must let the other greenlets go on. Whoever holds the store's lock must not: it calls
what Python itself has.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def is_patched(module: str) -> bool:
    """Whether gevent has patched this module."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched(module))


def original(module: str, name: str) -> Any:
    """A module's attribute as it is without gevent; None if the platform does not have it."""
    try:
        if is_patched(module):
            return sys.modules["gevent.monkey"].get_original(module, name)
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return None
