"""The table of capabilities is the one that the tests ask for."""

from __future__ import annotations

import inspect

from tests.contract.dramatiq import BrokerContract, RateLimitsContract, ResultsContract
from tests.contract.dramatiq.capabilities import Capability, who_has


def asked_for() -> set[Capability]:
    """Every capability that a test of a contract asks for."""
    tests = [
        test
        for contract in (BrokerContract, ResultsContract, RateLimitsContract)
        for _, test in inspect.getmembers(contract, inspect.isfunction)
    ]
    marks = [mark for test in tests for mark in getattr(test, "pytestmark", [])]
    return {each for mark in marks if mark.name == "needs" for each in mark.args}


def test_each_capability_is_asked_for_by_a_test() -> None:
    assert asked_for() == set(Capability)


def test_each_capability_tells_backends_apart() -> None:
    table = who_has()
    assert list(table) == ["Stub", "Redis", "RabbitMQ", "LMDB"]
    having = {each: sum(each in has for has in table.values()) for each in Capability}
    assert [each for each, number in having.items() if number in (0, 4)] == []
