"""What every kind of queue promises, as classes that a test module binds to one kind.

A binding subclasses the classes and provides one fixture, `backend`, with

- `open(name="default", **options)`: a queue handle on the backend's store,
- `reopen()`: closes every handle, so that the next `open` starts from what is on disk.

Nothing here may depend on the kind of queue, on the clock, or on another process.
"""

from __future__ import annotations

from tests.contract.bulk import BulkContract
from tests.contract.completion import CompletionContract
from tests.contract.counters import CountersContract
from tests.contract.delivery import DeliveryContract
from tests.contract.lookup import LookupContract
from tests.contract.management import ManagementContract
from tests.contract.pausing import PausingContract
from tests.contract.results import ResultsContract
from tests.contract.retries import RetriesContract
from tests.contract.scheduling import SchedulingContract
from tests.contract.unique import UniqueContract


class QueueContract(
    DeliveryContract,
    CompletionContract,
    RetriesContract,
    CountersContract,
    SchedulingContract,
    UniqueContract,
    BulkContract,
    LookupContract,
    ManagementContract,
    PausingContract,
    ResultsContract,
):
    """All of it."""


__all__ = ["QueueContract"]
