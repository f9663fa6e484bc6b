"""The engine's clocks, as references of its own.

Applications and test suites replace ``time.time`` and ``time.sleep``; the engine must go on telling
time. Wall time dates what users see and schedule. Leases are measured on the monotonic clock, which
every process of the machine shares and which no clock adjustment moves; after a reboot the owners
are gone anyway.
"""

from __future__ import annotations

from time import monotonic, time

__all__ = ["monotonic", "wall"]

wall = time
