"""Dramatiq on a directory instead of a server.

::

    import dramatiq
    from equeue_dramatiq import LMDBBroker

    dramatiq.set_broker(LMDBBroker("./data"))
"""

from equeue_dramatiq.broker import LMDBBroker
from equeue_dramatiq.rate_limits import LMDBRateLimiterBackend
from equeue_dramatiq.results import LMDBResultBackend

__all__ = ["LMDBBroker", "LMDBRateLimiterBackend", "LMDBResultBackend"]
