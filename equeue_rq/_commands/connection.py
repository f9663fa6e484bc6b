"""The connection itself: PING, SELECT, HELLO, AUTH, QUIT, RESET."""

from __future__ import annotations

from equeue_rq._commands._table import Call, command, integer
from equeue_rq._keyspace import DATABASES
from equeue_rq._messages import SYNTAX, CommandError, wrong_arity
from equeue_rq._replies import OK, Push, Reply, Status

VERSION = b"7.2.4"
"""The release of Redis whose commands and answers these are."""

_PONG = Status(b"PONG")
_NOT_ASKED = (
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is correct?"
)
_WRONG_USER = "WRONGPASS invalid username-password pair or user is disabled."
_BAD_NAME = "ERR {} cannot contain spaces, newlines or special characters."


@command("PING", -1, "connection")
def ping(call: Call) -> Reply:
    """Answer PONG, or the message."""
    if len(call.args) > 1:
        raise wrong_arity("ping")
    if call.session.protocol == 2 and call.session.is_subscribed:
        return Push([b"pong", call.args[0] if call.args else b""])
    return call.args[0] if call.args else _PONG


@command("ECHO", 2, "connection")
def echo(call: Call) -> Reply:
    """Answer the message."""
    return call.args[0]


@command("SELECT", 2, "connection")
def select(call: Call) -> Reply:
    """Use another database."""
    number = integer(call.args[0])
    if not 0 <= number < DATABASES:
        raise CommandError("ERR DB index is out of range")
    call.session.db = number
    call.session.show()
    return OK


@command("AUTH", -2, "connection", "noscript")
def auth(call: Call) -> Reply:
    """Log in. There is one user, ``default``, who needs no password."""
    if len(call.args) > 2:
        raise CommandError(SYNTAX)
    if len(call.args) == 1:
        raise CommandError(_NOT_ASKED)
    _log_in(call.args[0])
    return OK


def _log_in(user: bytes) -> None:
    if user != b"default":
        raise CommandError(_WRONG_USER)


@command("HELLO", -1, "connection", "noscript")
def hello(call: Call) -> Reply:
    """Choose a version of the protocol, and tell about the server."""
    session, rest = call.session, list(call.args)
    protocol = session.protocol
    if rest:
        protocol = integer(rest.pop(0), "ERR Protocol version is not an integer or out of range")
        if protocol not in (2, 3):
            raise CommandError("NOPROTO unsupported protocol version")
    name = None
    while rest:
        option = rest.pop(0).upper()
        if option == b"AUTH" and len(rest) >= 2:
            _log_in(rest.pop(0))
            rest.pop(0)
        elif option == b"SETNAME" and rest:
            name = checked_name(rest.pop(0), "Client names")
        else:
            raise CommandError(
                f"ERR Syntax error in HELLO option '{option.decode('latin-1').lower()}'"
            )
    if name is not None:
        session.client.name = name
    session.protocol = protocol
    session.show()
    return {
        b"server": b"redis",
        b"version": VERSION,
        b"proto": protocol,
        b"id": session.id,
        b"mode": b"standalone",
        b"role": b"master",
        b"modules": [],
    }


def checked_name(name: bytes, what: str) -> bytes:
    """A name that can stand in CLIENT LIST.

    Raises:
        CommandError: it cannot.
    """
    if any(not 33 <= byte <= 126 for byte in name):
        raise CommandError(_BAD_NAME.format(what))
    return name


@command("QUIT", -1, "connection", "noscript")
def quit_(call: Call) -> Reply:
    """End the connection."""
    call.session.close()
    return OK


@command("RESET", 1, "connection", "noscript")
def reset(call: Call) -> Reply:
    """Make the connection as new."""
    from equeue_rq._commands.pubsub import leave_all

    session = call.session
    leave_all(session)
    session.reset()
    session.client.name = b""
    session.client.no_evict = session.client.no_touch = False
    session.show()
    return Status(b"RESET")
