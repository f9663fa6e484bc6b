"""What a new connection begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import redis
from redis.exceptions import AuthenticationError, ConnectionError  # noqa: A004 - redis-py's

if TYPE_CHECKING:
    from equeue_rq._connection import LMDBConnection


def log_in(connection: LMDBConnection) -> None:
    """Log in, if the options say how, and choose protocol, name and database.

    Raises:
        redis.exceptions.AuthenticationError: the user is not ``default``, who needs no password.
        redis.exceptions.ResponseError: there is no such database, or it cannot have such a name.
    """
    credentials = _credentials(connection.options)
    if credentials:
        _ask(connection, "AUTH", *credentials)
    if connection.protocol == 3:
        connection.send_command("HELLO", 3, check_health=False)
        connection.handshake_metadata = connection.read_response()
    if connection.client_name:
        _ask(connection, "CLIENT", "SETNAME", connection.client_name)
    for option, value in zip(("LIB-NAME", "LIB-VER"), _library(connection.options), strict=True):
        if value:
            _ask(connection, "CLIENT", "SETINFO", option, value)
    if connection.db:
        _ask(connection, "SELECT", connection.db)


def _ask(connection: LMDBConnection, *words: Any) -> None:
    connection.send_command(*words, check_health=False)
    answer = connection.read_response(disable_decoding=True)
    if answer != b"OK":
        kind = AuthenticationError if words[0] == "AUTH" else ConnectionError
        raise kind(f"{words[0]}: {answer!r}")


def _credentials(options: dict[str, Any]) -> tuple[Any, ...]:
    provider = options.get("credential_provider")
    if provider is not None:
        return tuple(provider.get_credentials())
    username, password = options.get("username"), options.get("password")
    if username:
        return (username, password or "")
    return (password,) if password else ()


def _library(options: dict[str, Any]) -> tuple[str | None, str | None]:
    """The name and version of the client's library, for CLIENT LIST."""
    if "driver_info" in options:
        info = options["driver_info"]
        return (info.formatted_name, info.lib_version) if info is not None else (None, None)
    name, version = (
        options.get("lib_name", "redis-py"),
        options.get("lib_version", redis.__version__),
    )
    return name if isinstance(name, str) else None, version if isinstance(version, str) else None
