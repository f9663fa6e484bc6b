"""What every results backend promises."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from typing import Any, Protocol
from uuid import uuid4

import pytest
from dramatiq import Message, PickleEncoder
from dramatiq.results import ResultBackend, ResultFailure, ResultMissing, ResultTimeout

from tests.contract.dramatiq.capabilities import Capability, needs
from tests.contract.dramatiq.helpers import HOUR, note
from tests.contract.helpers import WATCHDOG, wait_until

TIMEOUT = int(WATCHDOG * 1000)


class ResultsBackend(Protocol):
    """What a binding of the contract provides as the fixture `backend`."""

    def open(self, **options: Any) -> ResultBackend:
        """A new backend object on the same results."""


def missing(results: ResultBackend, message: Message[Any]) -> bool:
    try:
        results.get_result(message)
    except ResultMissing:
        return True
    return False


class ResultsContract:
    @pytest.fixture
    def results(self, backend: ResultsBackend) -> ResultBackend:
        return backend.open()

    @pytest.fixture
    def message(self) -> Message[Any]:
        return note("default")

    def test_a_result_that_is_not_there_is_missing(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        with pytest.raises(ResultMissing):
            results.get_result(message)
        with pytest.raises(ResultMissing):
            message.get_result(backend=results)

    @pytest.mark.parametrize(
        "value",
        [None, False, 0, "", [], {}, "text \N{SNOWMAN}", [1, [2.5, None]], {"a": {"b": []}}],
        ids=repr,
    )
    @pytest.mark.contract("DRR-01")
    def test_what_is_stored_comes_back(
        self, results: ResultBackend, message: Message[Any], value: Any
    ) -> None:
        results.store_result(message, value, HOUR)
        got = results.get_result(message)
        assert got == value
        assert type(got) is type(value)

    def test_a_large_result_comes_back(self, results: ResultBackend, message: Message[Any]) -> None:
        value = "0123456789" * 100_000
        results.store_result(message, value, HOUR)
        assert results.get_result(message, block=True, timeout=TIMEOUT) == value

    @pytest.mark.contract("DRR-01")
    def test_reading_a_result_does_not_consume_it(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        results.store_result(message, "x", HOUR)
        for block in (False, True, True, False):
            assert results.get_result(message, block=block, timeout=TIMEOUT) == "x"

    @pytest.mark.parametrize("block", [False, True])
    @pytest.mark.contract("DRR-01")
    def test_an_exception_is_raised_where_the_result_is_asked_for(
        self, results: ResultBackend, message: Message[Any], block: bool
    ) -> None:
        results.store_exception(message, KeyError("on purpose"), HOUR)
        for _ in range(2):
            with pytest.raises(ResultFailure) as caught:
                results.get_result(message, block=block, timeout=TIMEOUT)
            assert caught.value.orig_exc_type == "KeyError"
            assert "on purpose" in caught.value.orig_exc_msg

    @pytest.mark.parametrize("timeout", [0, 20])
    def test_waiting_in_vain_ends(
        self, results: ResultBackend, message: Message[Any], timeout: int
    ) -> None:
        start = time.monotonic()
        with pytest.raises(ResultTimeout):
            results.get_result(message, block=True, timeout=timeout)
        assert time.monotonic() - start < WATCHDOG

    @needs(Capability.WAITS_ITS_TIMEOUT)
    @pytest.mark.parametrize("timeout", [1, 75])
    @pytest.mark.contract("DRR-02")
    def test_waiting_in_vain_takes_the_timeout(
        self, results: ResultBackend, message: Message[Any], timeout: int
    ) -> None:
        start = time.monotonic()
        with pytest.raises(ResultTimeout):
            results.get_result(message, block=True, timeout=timeout)
        assert time.monotonic() - start >= timeout / 1000

    def test_the_timeout_does_not_matter_if_the_result_is_there(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        results.store_result(message, "x", HOUR)
        assert results.get_result(message, block=True, timeout=0) == "x"

    @pytest.mark.contract("DRR-02")
    def test_a_result_ends_the_wait(self, results: ResultBackend, message: Message[Any]) -> None:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(results.get_result, message, block=True, timeout=TIMEOUT)
            results.store_result(message, "x", HOUR)
            assert waiting.result(WATCHDOG) == "x"

    @pytest.mark.contract("DRR-02")
    def test_an_exception_ends_the_wait(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(results.get_result, message, block=True, timeout=TIMEOUT)
            results.store_exception(message, KeyError("x"), HOUR)
            assert isinstance(waiting.exception(WATCHDOG), ResultFailure)

    @pytest.mark.contract("DRR-01")
    def test_several_readers_wait_for_one_result(
        self, backend: ResultsBackend, message: Message[Any]
    ) -> None:
        readers = [backend.open() for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            waiting = [
                pool.submit(reader.get_result, message, block=True, timeout=TIMEOUT)
                for reader in readers
            ]
            backend.open().store_result(message, "x", HOUR)
            assert [each.result(WATCHDOG) for each in waiting] == ["x"] * 4

    def test_each_reader_gets_what_it_waits_for(self, results: ResultBackend) -> None:
        messages = [note("default", number) for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            waiting = [
                pool.submit(results.get_result, message, block=True, timeout=TIMEOUT)
                for message in messages
            ]
            for message in reversed(messages):
                results.store_result(message, message.args[0], HOUR)
            assert [each.result(WATCHDOG) for each in waiting] == list(range(8))

    @pytest.mark.contract("DRR-01")
    def test_a_result_is_kept_for_its_time(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        kept = note("default")
        results.store_result(kept, "kept", HOUR)
        results.store_result(message, "x", 1)
        wait_until(lambda: missing(results, message), "the result has expired")
        assert results.get_result(kept) == "kept"

    def test_an_expired_result_can_be_stored_again(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        results.store_result(message, "old", 1)
        wait_until(lambda: missing(results, message), "the result has expired")
        results.store_result(message, "new", HOUR)
        assert results.get_result(message) == "new"

    def test_the_last_one_stored_counts(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        results.store_result(message, "first", HOUR)
        results.store_exception(message, KeyError("second"), HOUR)
        with pytest.raises(ResultFailure):
            results.get_result(message)
        results.store_result(message, "third", HOUR)
        assert results.get_result(message) == "third"

    def test_the_last_one_stored_brings_its_own_time(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        results.store_result(message, "long", HOUR)
        results.store_result(message, "short", 1)
        wait_until(lambda: missing(results, message), "the result has expired")

    def test_messages_have_results_of_their_own(self, results: ResultBackend) -> None:
        one, other = note("default"), note("default")
        results.store_result(one, 1, HOUR)
        assert missing(results, other)
        results.store_result(other, 2, HOUR)
        assert results.get_result(one) == 1

    def test_a_delayed_message_and_the_one_that_ran_have_the_same_result(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        results.store_result(message, "x", HOUR)
        assert results.get_result(message.copy(queue_name="default.DQ")) == "x"

    def test_backends_of_a_namespace_share_their_results(
        self, backend: ResultsBackend, message: Message[Any]
    ) -> None:
        namespace = f"of-a-test-{uuid4().hex}"
        one, other = (backend.open(namespace=namespace) for _ in range(2))
        one.store_result(message, "x", HOUR)
        assert other.get_result(message) == "x"

    @pytest.mark.contract("DRR-03")
    def test_namespaces_keep_results_apart(
        self, backend: ResultsBackend, message: Message[Any]
    ) -> None:
        one, other = backend.open(namespace="one"), backend.open(namespace="other")
        one.store_result(message, 1, HOUR)
        assert missing(other, message)
        other.store_result(message, 2, HOUR)
        assert (one.get_result(message), other.get_result(message)) == (1, 2)

    @pytest.mark.contract("DRR-03")
    @pytest.mark.skipif(
        "use_namespace_prefix_keys" not in signature(ResultBackend).parameters,
        reason="Dramatiq 2.0 has no such option",
    )
    def test_keys_with_the_namespace_as_prefix(
        self, backend: ResultsBackend, message: Message[Any]
    ) -> None:
        results = backend.open(namespace="name", use_namespace_prefix_keys=True)
        key = f"name:default:work:{message.message_id}"
        assert results.build_message_key(message) == key
        assert missing(results, message)
        results.store_result(message, "x", HOUR)
        assert results.get_result(message, block=True, timeout=TIMEOUT) == "x"
        assert missing(backend.open(namespace="name"), message)

    @pytest.mark.contract("DRR-03")
    def test_the_encoder_is_the_backends_own(
        self, backend: ResultsBackend, message: Message[Any]
    ) -> None:
        results = backend.open(encoder=PickleEncoder())
        value = ({1, 2}, b"\x00\xff")
        results.store_result(message, value, HOUR)
        assert results.get_result(message) == value

    def test_what_cannot_be_encoded_is_not_stored(
        self, results: ResultBackend, message: Message[Any]
    ) -> None:
        with pytest.raises(TypeError):
            results.store_result(message, object(), HOUR)
        assert missing(results, message)
