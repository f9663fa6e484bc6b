"""The tree of errors: each is caught by what its users would catch."""

from __future__ import annotations

import queue as stdlib_queue

import pytest

import equeue_core
from equeue_core import EQueueError, errors

TREE: dict[str, tuple[type[BaseException], ...]] = {
    "QueueEmpty": (stdlib_queue.Empty,),
    "QueueFull": (stdlib_queue.Full,),
    "DiskFull": (equeue_core.QueueFull,),
    "QueueClosed": (),
    "QueueCorrupted": (),
    "ClaimLost": (equeue_core.QueueCorrupted,),
    "JobNotFound": (LookupError,),
    "JobStateError": (),
    "DuplicateJob": (),
    "JobFailed": (),
    "JobCancelled": (),
    "ResultTimeout": (TimeoutError,),
    "JoinTimeout": (TimeoutError,),
    "PayloadError": (TypeError,),
    "StoreError": (),
    "StoreOptionError": (equeue_core.StoreError, ValueError),
    "StoreVersionError": (equeue_core.StoreError,),
    "ForeignStoreError": (equeue_core.StoreError,),
    "StoreAccessError": (equeue_core.StoreError,),
    "NetworkFileSystemError": (equeue_core.StoreError,),
    "StoreBusy": (equeue_core.StoreError,),
}


@pytest.mark.contract("BAD-06")
@pytest.mark.parametrize("name", TREE)
def test_an_error_is_what_it_should_be(name: str) -> None:
    error = getattr(equeue_core, name)
    assert name in equeue_core.__all__
    for base in (EQueueError, *TREE[name]):
        assert issubclass(error, base)


@pytest.mark.contract("BAD-06")
def test_every_error_is_public_and_in_the_drawing() -> None:
    for name in errors.__all__:
        assert name in equeue_core.__all__
        assert name in (errors.__doc__ or "")
        assert (getattr(errors, name).__doc__ or "").strip()
