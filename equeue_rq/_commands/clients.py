"""CLIENT: who is connected to the store, from any process, and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from equeue_core.storage import Txn
from equeue_rq import _clients as clients
from equeue_rq._clients import Client, Message
from equeue_rq._commands._table import Call, command, integer
from equeue_rq._commands.connection import checked_name
from equeue_rq._messages import SYNTAX, CommandError
from equeue_rq._replies import OK, Reply
from equeue_rq._session import Session

_wall = time.time  # a reference of our own: applications patch time.time

_TYPES = (b"normal", b"master", b"replica", b"slave", b"pubsub")
_BAD_ID = "ERR Invalid client ID"

_Wanted = Callable[[Client], bool]


# This connection


@command("CLIENT ID", 2, "connection", "noscript")
def client_id(call: Call) -> Reply:
    """The connection's number, greater than that of those before it."""
    return call.session.id


@command("CLIENT SETNAME", 3, "connection", "noscript")
def client_setname(call: Call) -> Reply:
    """Give the connection a name; an empty one takes it away."""
    call.session.client.name = checked_name(call.args[0], "Client names")
    call.session.show()
    return OK


@command("CLIENT GETNAME", 2, "connection", "noscript")
def client_getname(call: Call) -> Reply:
    """The connection's name."""
    return call.session.client.name or None


@command("CLIENT SETINFO", 4, "connection", "noscript")
def client_setinfo(call: Call) -> Reply:
    """Tell which library the client is, and its version."""
    option, value = call.args
    shown = option.decode("latin-1")
    if option.upper() == b"LIB-NAME":
        call.session.client.library = checked_name(value, shown)
    elif option.upper() == b"LIB-VER":
        call.session.client.version = checked_name(value, shown)
    else:
        raise CommandError(f"ERR Unrecognized option '{shown}'")
    call.session.show()
    return OK


@command("CLIENT INFO", 2, "connection", "noscript")
def client_info(call: Call) -> Reply:
    """The connection's line of CLIENT LIST."""
    call.session.show()
    return call.session.client.describe(_wall()) + b"\n"


@command("CLIENT NO-EVICT", 3, "connection", "noscript")
def client_no_evict(call: Call) -> Reply:
    """Never end the connection for want of memory, which does not happen anyway."""
    call.session.client.no_evict = _on_or_off(call.args[0])
    return OK


@command("CLIENT NO-TOUCH", 3, "connection", "noscript")
def client_no_touch(call: Call) -> Reply:
    """Do not let commands count as use of a key, which they do not anyway."""
    call.session.client.no_touch = _on_or_off(call.args[0])
    return OK


def _on_or_off(word: bytes) -> bool:
    if word.upper() not in (b"ON", b"OFF"):
        raise CommandError(SYNTAX)
    return word.upper() == b"ON"


@command("CLIENT REPLY", 3, "connection", "noscript")
def client_reply(call: Call) -> Reply:
    """Have answers, which is all that can be had."""
    if call.args[0].upper() != b"ON":
        raise CommandError(SYNTAX)
    return OK


@command("CLIENT GETREDIR", 2, "connection", "noscript")
def client_getredir(call: Call) -> Reply:
    """-1: there is no tracking of keys."""
    return -1


# All of them


@command("CLIENT LIST", -2, "connection", "noscript")
def client_list(call: Call) -> Reply:
    """A line for each connection to the store, from any process."""
    args, wanted = list(call.args), _any
    if args:
        option = args.pop(0).upper()
        if option == b"TYPE" and len(args) == 1:
            wanted = partial(_is_of_type, _client_type(args[0]))
        elif option == b"ID" and args:
            wanted = partial(_is_one_of, {_positive(each) for each in args})
        else:
            raise CommandError(SYNTAX)
    now = _wall()
    return b"".join(each.describe(now) + b"\n" for each in _everybody(call.session) if wanted(each))


def _everybody(session: Session) -> list[Client]:
    session.show()
    return clients.present(session.space.roster)


def _any(client: Client) -> bool:
    return True


def _is_of_type(kind: bytes, client: Client) -> bool:
    return client.kind == kind


def _is_one_of(ids: set[int], client: Client) -> bool:
    return client.id in ids


def _client_type(word: bytes) -> bytes:
    if word.lower() not in _TYPES:
        raise CommandError(f"ERR Unknown client type '{word.decode('latin-1')}'")
    return word.lower()


def _positive(raw: bytes) -> int:
    number = integer(raw, _BAD_ID)
    if number < 1:
        raise CommandError(_BAD_ID)
    return number


@command("CLIENT KILL", -3, "connection", "noscript")
def client_kill(call: Call) -> Reply:
    """End connections, of any process; who waits gets an error."""
    session, args = call.session, call.args
    if len(args) == 1:
        address = args[0].decode("latin-1")
        if not _end(session, lambda client: client.address == address):
            raise CommandError("ERR No such client")
        return OK
    wanted, spared = _filters(args, session.id)
    return _end(session, lambda client: client.id != spared and all(w(client) for w in wanted))


def _filters(args: list[bytes], own: int) -> tuple[list[_Wanted], int]:
    """What the clients to end have in common, and the one that is spared; 0: none."""
    if len(args) % 2:
        raise CommandError(SYNTAX)
    wanted: list[_Wanted] = []
    spared = own
    for option, value in zip(args[::2], args[1::2], strict=True):
        if option.upper() == b"SKIPME":
            if value.lower() not in (b"yes", b"no"):
                raise CommandError(SYNTAX)
            spared = own if value.lower() == b"yes" else 0
        else:
            wanted.append(_filter(option.upper(), value))
    return wanted, spared


def _filter(option: bytes, value: bytes) -> _Wanted:
    text = value.decode("latin-1")
    if option == b"ID":
        message = "ERR client-id should be greater than 0"
        number = integer(value, message)
        if number < 1:
            raise CommandError(message)
        return partial(_is_one_of, {number})
    if option == b"TYPE":
        return partial(_is_of_type, _client_type(value))
    if option == b"ADDR":
        return lambda client: client.address == text
    if option == b"LADDR":
        return lambda client: text == "127.0.0.1:0"
    if option == b"USER":
        if value != b"default":
            raise CommandError(f"ERR No such user '{text}'")
        return _any
    if option == b"MAXAGE":
        age = integer(value, "ERR maxage is not an integer or out of range")
        if age < 1:
            raise CommandError("ERR maxage should be greater than 0")
        return lambda client: _wall() - client.since >= age
    raise CommandError(SYNTAX)


def _end(session: Session, wanted: _Wanted) -> int:
    """End those that are wanted; how many."""
    found = [client for client in _everybody(session) if wanted(client)]
    _tell(session, [client.id for client in found if client.id != session.id], Message.END)
    if any(client.id == session.id for client in found):
        session.close()  # the answer to this command is still given
    return len(found)


def _tell(session: Session, ids: list[int], message: Message) -> None:
    def tell(txn: Txn) -> None:
        for number in ids:
            clients.call(session.space, txn, number, message)

    if ids:
        session.space.write(tell)


@command("CLIENT UNBLOCK", -3, "connection", "noscript")
def client_unblock(call: Call) -> Reply:
    """Let a client that waits in a blocking command get nothing, or an error; whether there was one."""
    number = integer(call.args[0])
    message = Message.GIVE_UP
    if len(call.args) == 2 and call.args[1].upper() in (b"ERROR", b"TIMEOUT"):
        message = Message.FAIL if call.args[1].upper() == b"ERROR" else message
    elif len(call.args) > 1:
        raise CommandError(
            "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"
            if len(call.args) == 2
            else SYNTAX
        )
    waits = [each for each in _everybody(call.session) if each.id == number and each.blocked]
    _tell(call.session, [each.id for each in waits], message)
    return len(waits)
