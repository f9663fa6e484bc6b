"""The same project without django-redis: the queues' own settings have a pool."""

from common import STORE
from settings import *  # noqa: F403

from equeue_rq import LMDBConnectionPool

POOL = LMDBConnectionPool.from_url(f"lmdb://{STORE}")
ON_THE_STORE = {"HOST": "", "PORT": 0, "REDIS_CLIENT_KWARGS": {"connection_pool": POOL}}
RQ_QUEUES = {"default": ON_THE_STORE, "high": ON_THE_STORE}
