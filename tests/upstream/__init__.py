"""Dramatiq's own tests, run on this project's broker and backends."""
