"""Publishing and subscribing, between all processes that use the store. Databases play no part in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from equeue_core.storage import Txn
from equeue_rq import _clients as clients
from equeue_rq import _mailboxes as mailboxes
from equeue_rq._clients import Message
from equeue_rq._commands._table import Call, Several, command
from equeue_rq._glob import matcher
from equeue_rq._mailboxes import Kind
from equeue_rq._messages import CommandError
from equeue_rq._replies import Push, Reply
from equeue_rq._session import Session

# Subscribing


@command("SUBSCRIBE", -2, "connection", "noscript")
def subscribe(call: Call) -> Reply:
    """Listen to channels."""
    return _join(call, Kind.CHANNEL, b"subscribe")


@command("PSUBSCRIBE", -2, "connection", "noscript")
def psubscribe(call: Call) -> Reply:
    """Listen to all channels that match patterns."""
    return _join(call, Kind.PATTERN, b"psubscribe")


@command("SSUBSCRIBE", -2, "connection", "noscript")
def ssubscribe(call: Call) -> Reply:
    """Listen to shard channels."""
    return _join(call, Kind.SHARD, b"ssubscribe")


@command("UNSUBSCRIBE", -1, "connection", "noscript")
def unsubscribe(call: Call) -> Reply:
    """Listen to channels, or any, no longer."""
    return _leave(call.session, Kind.CHANNEL, b"unsubscribe", call.args)


@command("PUNSUBSCRIBE", -1, "connection", "noscript")
def punsubscribe(call: Call) -> Reply:
    """Listen to channels that match patterns, or any, no longer."""
    return _leave(call.session, Kind.PATTERN, b"punsubscribe", call.args)


@command("SUNSUBSCRIBE", -1, "connection", "noscript")
def sunsubscribe(call: Call) -> Reply:
    """Listen to shard channels, or any, no longer."""
    return _leave(call.session, Kind.SHARD, b"sunsubscribe", call.args)


def _join(call: Call, kind: Kind, word: bytes) -> Reply:
    session = call.session
    if not session.is_seated:
        raise CommandError("ERR there is no room for one more subscriber")
    alive = _alive(session)

    def run(txn: Txn) -> list[Reply]:
        mailboxes.clear(txn, session.id, alive)
        mail = _earlier_mail(session, txn)
        mailboxes.subscribe(txn, session.id, kind, call.args)
        return mail

    replies = session.space.write(run)
    for name in call.args:
        session.subscriptions[kind][name] = None
        replies.append(Push([word, name, _number(session, kind)]))
    session.show()
    return Several(replies)


def _leave(session: Session, kind: Kind, word: bytes, names: list[bytes]) -> Reply:
    own = session.subscriptions[kind]
    names = names or list(own)
    gone = {name for name in names if name in own}
    all_gone = len(gone) == sum(map(len, session.subscriptions.values()))

    def run(txn: Txn) -> list[Reply]:
        mail = _earlier_mail(session, txn)
        if all_gone:
            mailboxes.forget(txn, session.id)
        else:
            mailboxes.unsubscribe(txn, session.id, kind, gone)
        return mail

    replies = session.space.write(run) if gone else []
    shown: list[bytes | None] = [*names] or [None]
    for name in shown:
        if name is not None:
            own.pop(name, None)
        replies.append(Push([word, name, _number(session, kind)]))
    session.show()
    return Several(replies)


def _earlier_mail(session: Session, txn: Txn) -> list[Reply]:
    """What was published before, which the client is to get before it gets the answer."""
    return [Push(each) for each in mailboxes.take(txn, session.id, mailboxes.LIMIT) or []]


def leave_all(session: Session) -> None:
    """Let a connection listen to nothing any more."""
    if session.is_subscribed:
        session.space.write(partial(mailboxes.forget, number=session.id))
        for own in session.subscriptions.values():
            own.clear()


def _number(session: Session, kind: Kind) -> int:
    """To how much it listens; shard channels count for themselves."""
    if kind is Kind.SHARD:
        return len(session.subscriptions[Kind.SHARD])
    return len(session.subscriptions[Kind.CHANNEL]) + len(session.subscriptions[Kind.PATTERN])


def _alive(session: Session) -> Callable[[int], bool]:
    roster = session.space.roster
    known: dict[int, bool] = {}

    def alive(number: int) -> bool:
        found = known.get(number)
        if found is None:
            found = known[number] = clients.is_alive(roster, number)
        return found

    return alive


# Publishing


@command("PUBLISH", 3, "write")
def publish(call: Call) -> Reply:
    """Send a message to those who listen to a channel; how often it was received."""
    return _publish(call, Kind.CHANNEL)


@command("SPUBLISH", 3, "write")
def spublish(call: Call) -> Reply:
    """Send a message to those who listen to a shard channel; how often it was received."""
    return _publish(call, Kind.SHARD)


def _publish(call: Call, kind: Kind) -> int:
    db, (channel, data) = call.db, call.args
    reached, lost = mailboxes.publish(db.txn, kind, channel, data, _alive(call.session))
    for number in set(reached):
        db.space.announce(db.txn, mailboxes.bell(number))
    for number in lost:
        clients.call(db.space, db.txn, number, Message.END)
    return len(reached)


# Counting


@command("PUBSUB CHANNELS", -2, "readonly")
def pubsub_channels(call: Call) -> Reply:
    """The channels that somebody listens to, of those that match a pattern."""
    return _names(call, Kind.CHANNEL)


@command("PUBSUB SHARDCHANNELS", -2, "readonly")
def pubsub_shardchannels(call: Call) -> Reply:
    """The shard channels that somebody listens to, of those that match a pattern."""
    return _names(call, Kind.SHARD)


def _names(call: Call, kind: Kind) -> Reply:
    if len(call.args) > 1:
        raise CommandError(
            f"ERR unknown subcommand or wrong number of arguments for '{call.name.split()[1]}'. Try "
            "PUBSUB HELP."
        )
    matches = matcher(call.args[0] if call.args else b"*")
    names = mailboxes.names(call.db.txn, kind, _alive(call.session))
    return [name for name in names if matches(name)]


@command("PUBSUB NUMSUB", -2, "readonly")
def pubsub_numsub(call: Call) -> Reply:
    """How many listen to each of these channels, patterns not counted."""
    return _counts(call, Kind.CHANNEL)


@command("PUBSUB SHARDNUMSUB", -2, "readonly")
def pubsub_shardnumsub(call: Call) -> Reply:
    """How many listen to each of these shard channels."""
    return _counts(call, Kind.SHARD)


def _counts(call: Call, kind: Kind) -> Reply:
    alive = _alive(call.session)
    replies: list[Reply] = []
    for channel in call.args:
        replies += [channel, mailboxes.count(call.db.txn, kind, channel, alive)]
    return replies


@command("PUBSUB NUMPAT", 2, "readonly")
def pubsub_numpat(call: Call) -> Reply:
    """How many different patterns are listened to."""
    return len(mailboxes.names(call.db.txn, Kind.PATTERN, _alive(call.session)))
