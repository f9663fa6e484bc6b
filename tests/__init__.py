"""The tests are a package, so that their helpers import as `tests.contract` from anywhere."""
