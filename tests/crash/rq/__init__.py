"""Crash tests of the RQ adapter: real `rq` commands, real signals."""
