"""What the packages show is what they promise, and each promise has a sentence."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest

import equeue_core
import equeue_dramatiq
import equeue_dramatiq.abort

PACKAGES = [equeue_core, equeue_dramatiq]


def is_public(name: str, value: object) -> bool:
    """Submodules and `from __future__` names are visible too, but they are no promise."""
    if name.startswith("_") or isinstance(value, ModuleType):
        return False
    return type(value).__module__ != "__future__"


def documented() -> list[Any]:
    """Every class and function of the API, and every public method and property of the classes."""
    found = []
    public = [(name, getattr(package, name)) for package in PACKAGES for name in package.__all__]
    public.append(("LMDBEventBackend", equeue_dramatiq.abort.LMDBEventBackend))
    for name, value in sorted(public, key=lambda pair: pair[0]):
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        found.append(pytest.param(value, id=name))
        if inspect.isclass(value):
            found += [
                pytest.param(member, id=f"{name}.{attribute}")
                for attribute, member in sorted(vars(value).items())
                if not attribute.startswith("_") and is_method(member)
            ]
    return found


def is_method(member: object) -> bool:
    return inspect.isroutine(member) or isinstance(member, property)


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_exactly_what_is_visible(package: ModuleType) -> None:
    visible = {name for name, value in vars(package).items() if is_public(name, value)}
    promised = {name for name in package.__all__ if not name.startswith("__")}
    assert promised == visible


@pytest.mark.parametrize("package", PACKAGES)
def test_all_has_no_duplicates_and_only_names_that_exist(package: ModuleType) -> None:
    assert len(package.__all__) == len(set(package.__all__))
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


def test_the_names_of_the_contract_are_there() -> None:
    expected = {
        "AsyncQueue", "ClaimLost", "DiskFull", "DuplicateJob", "EQueueError",
        "ForeignStoreError", "Job", "JobCancelled", "JobError", "JobFailed",
        "JobNotFound", "JobStateError", "JoinTimeout", "NetworkFileSystemError",
        "PayloadError", "Queue", "QueueClosed", "QueueCorrupted", "QueueEmpty",
        "QueueFull", "Record", "ResultTimeout", "State", "Store", "StoreAccessError",
        "StoreBusy", "StoreError", "StoreOptionError", "StoreVersionError",
        "Transaction", "exponential_backoff",
    }  # fmt: skip
    assert expected - set(equeue_core.__all__) == set()


@pytest.mark.parametrize("value", documented())
def test_each_public_name_has_a_docstring(value: Any) -> None:
    # Exceptions and subclasses must not pass with a docstring that they inherit.
    text = value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
    assert text
    assert text.strip()
    # The one that @dataclass makes up is a signature, not a sentence.
    assert not text.startswith(f"{getattr(value, '__name__', '')}(")


def test_every_error_is_caught_by_the_root_error() -> None:
    errors = [
        value
        for name in equeue_core.__all__
        if inspect.isclass(value := getattr(equeue_core, name)) and issubclass(value, BaseException)
    ]
    assert len(errors) > 10
    assert [error for error in errors if not issubclass(error, equeue_core.EQueueError)] == []
