"""What stands beside Dramatiq's tests when they run: copied into their package, whose `__init__` this is.

Some tests make brokers and backends themselves, and so do the processes of the `dramatiq` command, which
import this package as well: hence they find ours under Dramatiq's names.
"""

from __future__ import annotations

import os

if not os.environ.get("EQUEUE_UPSTREAM_CONTROL"):
    import dramatiq.brokers.rabbitmq
    import dramatiq.brokers.redis
    import dramatiq.brokers.stub
    import dramatiq.results.backends

    from . import backends, memory, rabbitmq, redis

    dramatiq.brokers.stub.StubBroker = memory.Memory
    dramatiq.brokers.stub._StubMessageProxy = memory.FailedMessage
    dramatiq.brokers.redis.RedisBroker = redis.Broker
    dramatiq.brokers.rabbitmq.RabbitmqBroker = rabbitmq.Broker
    dramatiq.results.backends.StubBackend = backends.Results
