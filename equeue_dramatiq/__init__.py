"""The Dramatiq adapter of equeue: not built yet.

This package holds the name. It is to bring ``LMDBBroker``, a result backend and a rate limiter
backend that keep Dramatiq's messages in an equeue store instead of Redis or RabbitMQ. Today it is
empty.
"""
