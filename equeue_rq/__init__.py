"""The RQ adapter of equeue: not built yet.

This package holds the name. It is to bring a ``redis.Redis`` client whose commands run in this
process against an equeue store, so that RQ works without a Redis server. Today it is empty.
"""
