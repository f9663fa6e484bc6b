"""Payloads to bytes and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgpack

from equeue_core.errors import PayloadError


class Codec(Protocol):
    """What the ``codec`` option takes: two functions that undo each other."""

    def encode(self, value: Any, /) -> bytes:
        """The bytes to store for `value`."""

    def decode(self, raw: bytes, /) -> Any:
        """The value that `raw` stands for."""


_packers: list[msgpack.Packer] = []
"""Those that nobody uses at the moment."""


class MsgpackCodec:
    """The default: None, bool, numbers, str, bytes, lists (tuples become lists) and dicts."""

    @staticmethod
    def encode(value: Any) -> bytes:
        # A packer serves one call at a time. A payload may run code while it is packed (a dict with an
        # `items` of its own, a destructor), and with it another thread, or another put.
        try:
            packer = _packers.pop()
        except IndexError:
            packer = msgpack.Packer()
        raw: bytes = packer.pack(value)
        _packers.append(packer)
        return raw

    @staticmethod
    def decode(raw: bytes) -> Any:
        try:
            return msgpack.unpackb(raw, strict_map_key=False)
        except TypeError:
            # A tuple as a dict's key comes back as a list, which cannot be one.
            return msgpack.unpackb(raw, strict_map_key=False, object_pairs_hook=_with_tuples)


def _with_tuples(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {_as_key(key): value for key, value in pairs}


def _as_key(key: Any) -> Any:
    return tuple(map(_as_key, key)) if isinstance(key, list) else key


def checked_encode(codec: Codec, value: Any) -> bytes:
    """Encode, with one error for whatever the codec raises.

    Raises:
        PayloadError: the codec cannot encode the value.
    """
    try:
        raw = codec.encode(value)
    except Exception as error:
        if is_from_outside(codec.encode, value):
            raise
        raise PayloadError(
            f"the payload ({type(value).__name__}) cannot be stored: {error}; put plain data, or give the "
            "queue a codec"
        ) from error
    if type(raw) is not bytes:
        raise PayloadError(
            f"the codec made {type(raw).__name__} of the payload, it must make bytes"
        )
    return raw


def checked_decode(codec: Codec, raw: bytes) -> Any:
    """Decode, with one error for whatever the codec raises.

    Raises:
        PayloadError: the codec cannot decode the bytes.
    """
    try:
        return codec.decode(raw)
    except Exception as error:
        if is_from_outside(codec.decode, raw):
            raise
        raise PayloadError(
            f"the stored payload cannot be decoded ({type(error).__name__}: {error}); its bytes are in "
            "Job.payload_bytes"
        ) from error


def is_from_outside(function: Callable[[Any], Any], value: Any) -> bool:
    """Whether an exception out of `function(value)` was not its own, but a signal handler's, or one
    that another thread sent (a time limit): its own comes again.
    """
    try:
        function(value)
    except Exception:  # noqa: BLE001 - whatever a codec raises
        return False
    return True
