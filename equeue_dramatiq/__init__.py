"""Dramatiq on a directory instead of a server.

::

    import dramatiq
    from equeue_dramatiq import LMDBBroker

    dramatiq.set_broker(LMDBBroker("./data"))
"""

from equeue_dramatiq.broker import LMDBBroker

__all__ = ["LMDBBroker"]
