"""redis-py's connection, without a server: commands are run in this process, on a store."""

from __future__ import annotations

import copy
import os
import time
import weakref
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import redis
import redis.connection
from redis._parsers import Encoder, _RESP2Parser, _RESP3Parser
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, TimeoutError  # noqa: A004 - redis-py's
from redis.retry import Retry

from equeue_core import EQueueError
from equeue_core.storage import Sync
from equeue_rq._address import Address
from equeue_rq._dispatch import execute_all
from equeue_rq._errors import ConnectionLost, connection_error
from equeue_rq._login import log_in
from equeue_rq._packing import Packer, Words
from equeue_rq._reading import NothingToRead, has_message, next_reply
from equeue_rq._replies import Push, Reply
from equeue_rq._running import TimedOut
from equeue_rq._session import Disconnected, Session
from equeue_rq._shapes import Shaper

try:
    from redis.connection import ConnectionInterface
except ImportError:  # redis-py before 5.1

    class ConnectionInterface:  # type: ignore[no-redef]
        """What later releases have declared."""


_RESP_DEFAULT: int = getattr(redis.connection, "DEFAULT_RESP_VERSION", 2)
_UNSAID: Any = object()

_getpid = os.getpid
_clock: Callable[[], float] = (
    time.monotonic if isinstance(vars(redis.connection).get("time"), ModuleType) else time.time
)
"""The clock by which the installed redis-py knows when the next health check is due."""


class LMDBConnection(ConnectionInterface):
    """A connection of a redis-py pool to a store instead of a server.

    Parameters:
        db: the number of the database.
        path: the store's directory.
        connection_pool: an `Address`, instead of a path; see there for the name.
        sync, allow_network_fs: as for `equeue_core.Store`, with a path.
        socket_timeout: seconds that a blocking command or read may take; None: as long as it wants.
        client_name, username, password, credential_provider, encoding, encoding_errors, decode_responses,
            health_check_interval, protocol, redis_connect_func: as redis-py has them.
        retry, retry_on_error, retry_on_timeout: as redis-py has them. Without them, only what is certain
            not to have been done is tried again, once.
        options: what else redis-py hands to connections is of no use here.
    """

    def __init__(
        self,
        db: int = 0,
        *,
        path: str | os.PathLike[str] | None = None,
        connection_pool: Address | None = None,
        sync: Sync = None,
        allow_network_fs: bool = False,
        socket_timeout: float | None = None,
        client_name: str | None = None,
        encoding: str = "utf-8",
        encoding_errors: str = "strict",
        decode_responses: bool = False,
        health_check_interval: float = 0,
        protocol: int | str | None = None,
        redis_connect_func: Callable[[Any], object] | None = None,
        retry: Retry | None = None,
        retry_on_error: Iterable[type[Exception]] | None = None,
        retry_on_timeout: bool = False,
        **options: Any,
    ) -> None:
        if connection_pool is None:
            if path is None:
                raise TypeError("say where the store is: path=...")
            connection_pool = Address.of(path, sync, allow_network_fs, {})
        self.address = connection_pool
        self.pid = _getpid()
        self.db = db
        self.host, self.port = connection_pool.path, 0
        self.client_name = client_name
        self.options = options
        self.username, self.password = options.get("username"), options.get("password")
        self.credential_provider = options.get("credential_provider")
        self.health_check_interval = health_check_interval
        self.next_health_check: float = 0
        self.redis_connect_func = redis_connect_func
        self.encoder = Encoder(encoding, encoding_errors, decode_responses)
        self.protocol = _protocol(protocol)
        self._handshake_metadata: Any = None
        self.himport_registry = options.get("himport_registry")
        self._session: Session | None = None
        self._socket_timeout = socket_timeout
        self._connect_callbacks: list[weakref.WeakMethod[Any]] = []
        self._should_reconnect = False
        self._packer = Packer(self.encoder)
        self.set_parser(_RESP3Parser if self.protocol == 3 else _RESP2Parser)
        self._shaper = Shaper(self.protocol, self.encoder, self._parser.parse_error)
        self._set_retry(retry, retry_on_error, retry_on_timeout)
        self._forget_server()

    def _set_retry(
        self,
        retry: Retry | None,
        retry_on_error: Iterable[type[Exception]] | None,
        retry_on_timeout: bool,
    ) -> None:
        errors = list(retry_on_error) if isinstance(retry_on_error, (list, tuple, set)) else []
        if retry_on_timeout:
            errors.append(TimeoutError)
        if retry is None:
            self.retry = Retry(NoBackoff(), 1, supported_errors=(ConnectionLost,))
        else:
            self.retry = copy.deepcopy(retry)
        if errors:
            self.retry.update_supported_errors(errors)
        self.retry_on_error = [*errors, ConnectionLost]
        self.retry_on_timeout = retry_on_timeout

    def _forget_server(self) -> None:
        """What redis-py 8 keeps in connections for commands that there are none of here."""
        self._himport_prepared: dict[str, int] = {}
        self._himport_reconciled_revision = 0

    def __repr__(self) -> str:
        pieces = ",".join(f"{name}={value}" for name, value in self.repr_pieces())
        return f"<{type(self).__module__}.{type(self).__name__}({pieces})>"

    def repr_pieces(self) -> list[tuple[str, Any]]:
        """What `repr` shows."""
        pieces: list[tuple[str, Any]] = [("path", self.address.path), ("db", self.db)]
        if self.client_name:
            pieces.append(("client_name", self.client_name))
        return pieces

    def __del__(self) -> None:
        try:
            self.disconnect()
        except Exception:  # noqa: BLE001 - in a destructor, perhaps of what was never made
            pass

    # Connecting

    @property
    def is_connected(self) -> bool:
        """Whether there is a session, of this process."""
        return self._session is not None and not self._session.closed

    def connect(self) -> None:
        """Connect, unless it is connected.

        Raises:
            redis.exceptions.ConnectionError: the store cannot be used; ``BusyLoadingError`` if another
                process has it for itself just now.
        """
        if not self.is_connected:
            self.retry.call_with_retry(self._connect, lambda error: self.disconnect())

    def _connect(self) -> None:
        if self.is_connected:
            return
        address = self.address
        try:
            session = Session(
                address.path, sync=address.sync, allow_network_fs=address.allow_network_fs
            )
            session.open()
        except (EQueueError, Disconnected) as error:
            raise connection_error(error) from error
        session.patience = self._socket_timeout
        self._session = session
        try:
            if self.redis_connect_func is None:
                self.on_connect()
            else:
                self.redis_connect_func(self)
        except BaseException:
            self.disconnect()
            raise
        self._connect_callbacks = [each for each in self._connect_callbacks if each()]
        for each in list(self._connect_callbacks):
            callback = each()
            if callback:
                callback(self)

    def connect_check_health(
        self, check_health: bool = True, retry_socket_connect: bool = True
    ) -> None:
        """Connect; redis-py 6 and later have this."""
        self.connect()

    def on_connect(self) -> None:
        """Do what a new connection begins with: log in, choose protocol, name and database."""
        self._forget_server()
        log_in(self)

    def on_connect_check_health(self, check_health: bool = True) -> None:
        """The same; redis-py 6 and later have this."""
        self.on_connect()

    def disconnect(self, *args: Any, **kwargs: Any) -> None:
        """End the session. Who waits in it gets an error; the next command makes a new one."""
        session, self._session = self._session, None
        self._should_reconnect = False
        if session is not None:
            session.close()

    def register_connect_callback(self, callback: Callable[..., object]) -> None:
        """Have a method called after each connecting; it is held weakly."""
        method = weakref.WeakMethod(callback)
        if method not in self._connect_callbacks:
            self._connect_callbacks.append(method)

    def deregister_connect_callback(self, callback: Callable[..., object]) -> None:
        """Have it called no longer."""
        try:
            self._connect_callbacks.remove(weakref.WeakMethod(callback))
        except ValueError:
            pass

    def clear_connect_callbacks(self) -> None:
        """Have none called any longer; redis-py 5.0.0 has this."""
        self._connect_callbacks.clear()

    # Their names in redis-py 5.0.1.
    _register_connect_callback = register_connect_callback
    _deregister_connect_callback = deregister_connect_callback

    def mark_for_reconnect(self) -> None:
        """Have the session ended after its next command."""
        self._should_reconnect = True

    def should_reconnect(self) -> bool:
        """Whether it was marked."""
        return self._should_reconnect

    def reset_should_reconnect(self) -> None:
        """Forget the mark."""
        self._should_reconnect = False

    # Sending

    def pack_command(self, *args: Any) -> list[Words]:
        """The words of one command, as `send_packed_command` takes them."""
        return [self._packer.pack(args)]

    def pack_commands(self, commands: Iterable[Iterable[Any]]) -> list[Words]:
        """The words of several commands."""
        return [self._packer.pack(tuple(each)) for each in commands]

    def send_command(self, *args: Any, **kwargs: Any) -> None:
        """Run a command; `read_response` has its answer.

        Raises: see `send_packed_command`.
        """
        self.send_packed_command([self._packer.pack(args)], kwargs.get("check_health", True))

    def send_packed_command(self, command: list[Words], check_health: bool = True) -> None:
        """Run commands, MULTI to EXEC as one; `read_response` has their answers.

        Raises:
            redis.exceptions.ConnectionError: the store cannot be used, or the connection was ended.
            redis.exceptions.TimeoutError: a blocking command took more than ``socket_timeout``.
        """
        if not self.is_connected:
            self.connect()
        if check_health and self.health_check_interval:
            self.check_health()
        session, done = self._session, False
        try:
            if session is None:
                raise ConnectionLost("the connection was closed")
            for replies in execute_all(session, command):
                done = True
                session.replies.extend(replies)
                session.space.wake()  # another thread may be reading
        except TimedOut:
            self.disconnect()
            raise TimeoutError(f"Timeout reading from {self.host}") from None
        except (EQueueError, Disconnected) as error:
            self.disconnect()
            raise connection_error(error, done) from error
        except BaseException:
            # A time limit, say: what of the commands was done is not known.
            self.disconnect()
            raise

    def check_health(self) -> None:
        """PING, if it is time for that."""
        if self.health_check_interval and _clock() > self.next_health_check:
            self.retry.call_with_retry(self._ping, lambda error: self.disconnect())

    def _ping(self) -> None:
        self.send_command("PING", check_health=False)
        if self.read_response(disable_decoding=True) != b"PONG":
            raise ConnectionError("Bad response from PING health check")

    # Reading

    def can_read(self, timeout: float | None = 0) -> bool:
        """Whether there is an answer or a message, or a message comes within so many seconds (None: for
        ever).
        """
        if not self.is_connected:
            self.connect()
        session = self._session
        try:
            if session is None or session.replies:
                return session is not None
            if timeout == 0 and not session.is_subscribed:
                session.listen()
                return False
            return has_message(session, timeout)
        except (EQueueError, Disconnected) as error:
            self.disconnect()
            raise connection_error(error) from error

    def read_response(
        self,
        disable_decoding: bool = False,
        *,
        timeout: Any = _UNSAID,
        disconnect_on_error: bool = True,
        push_request: bool = False,
    ) -> Any:
        """The next answer or message, in the shape of the connection's protocol.

        Parameters:
            disable_decoding: bytes stay bytes.
            timeout: seconds to wait for a message, None: for ever; default: ``socket_timeout``.
            disconnect_on_error: end the session if reading fails.
            push_request: a message is wanted, too.

        Raises:
            redis.exceptions.ResponseError: the answer is an error.
            redis.exceptions.TimeoutError: there is nothing in time.
            redis.exceptions.ConnectionError: the connection was ended.
        """
        session, shaper = self._session, self._shaper
        try:
            while True:
                if session is not None and session.replies:
                    reply = session.replies.popleft()
                else:
                    reply = self._receive(timeout)
                response = shaper.shape(reply, bytes if disable_decoding else shaper.decode)
                if type(reply) is not Push or self.protocol == 2:
                    break
                response = self._show_push(response)
                if push_request:
                    break
        except BaseException:
            if disconnect_on_error:
                self.disconnect()
            raise
        if self.health_check_interval:
            self.next_health_check = _clock() + self.health_check_interval
        if isinstance(response, Exception):
            try:
                raise response
            finally:
                del response  # no cycle of references
        return response

    def _receive(self, timeout: Any) -> Reply:
        limit = timeout if isinstance(timeout, (int, float, type(None))) else self._socket_timeout
        session = self._session
        if session is None:
            raise ConnectionError("the connection is closed")
        try:
            return next_reply(session, limit)
        except NothingToRead:
            raise TimeoutError(f"Timeout reading from {self.host}") from None
        except (EQueueError, Disconnected) as error:
            raise connection_error(error) from error

    def _show_push(self, response: Any) -> Any:
        """Give the message to the handler that the application may have set."""
        parser: Any = self._parser
        handler = getattr(parser, "pubsub_push_handler_func", None) or parser.push_handler_func
        return handler(response)

    # What redis-py wants beside that

    @property
    def socket_timeout(self) -> float | None:
        """Seconds that a blocking command or read may take; None: as long as it wants."""
        return self._socket_timeout

    @socket_timeout.setter
    def socket_timeout(self, value: float | None) -> None:
        self._socket_timeout = value
        if self._session is not None:
            self._session.patience = value

    @property
    def handshake_metadata(self) -> Any:
        """What HELLO answered; None in RESP2."""
        return self._handshake_metadata

    @handshake_metadata.setter
    def handshake_metadata(self, value: Any) -> None:
        self._handshake_metadata = value

    def get_protocol(self) -> int:
        """The version of the protocol."""
        return self.protocol

    def set_parser(self, parser_class: Any) -> None:
        """Choose who makes errors, and hands messages to handlers; nothing is parsed."""
        self._parser = parser_class(socket_read_size=1)

    def _get_parser(self) -> Any:
        return self._parser

    def _get_socket(self) -> None:
        return None

    def set_re_auth_token(self, token: Any) -> None:
        """There is nobody to show a token to."""

    def re_auth(self) -> None:
        """There is nobody to show a token to."""

    def extract_connection_details(self) -> str:
        """Where it leads, for logs."""
        return f"connected to {self.host}" if self.is_connected else "not connected"


def _protocol(given: int | str | None) -> int:
    if given is None:
        return _RESP_DEFAULT
    try:
        number = int(given)
    except (TypeError, ValueError):
        raise ConnectionError("protocol must be an integer") from None
    if number not in (2, 3):
        raise ConnectionError("protocol must be either 2 or 3")
    return number
