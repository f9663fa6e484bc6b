"""The RQ adapter of equeue: all of RQ on a directory, without a Redis server.

`LMDBRedis` is a ``redis.Redis`` whose commands run in this process, on an equeue store. An application
that says ``Queue(connection=Redis())`` says ``Queue(connection=LMDBRedis("./data"))``, and that is all.
"""

from __future__ import annotations

from equeue_rq.client import LMDBConnection, LMDBConnectionPool, LMDBRedis

__all__ = ["LMDBConnection", "LMDBConnectionPool", "LMDBRedis"]
