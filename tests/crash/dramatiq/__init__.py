"""Dramatiq's own command line on the store, with real processes and real signals."""
