"""Answers and refusals about connections and transactions, word for word as a real server gives them."""

from __future__ import annotations

import pytest

from tests.rq.differential import Pair

CONNECTION = r"""
    PING
    PING hello
    PING a b
    ping
    ECHO hello
    ECHO
    ECHO a b
    SELECT 1
    SET k one
    SELECT 0
    GET k
    SELECT 15
    SELECT 16
    SELECT -1
    SELECT x
    SELECT 0
    AUTH
    AUTH pw
    AUTH default pw
    AUTH nobody pw
    AUTH a b c
    HELLO 4
    HELLO x
    CLIENT
    CLIENT FOO
    CLIENT SETNAME
    CLIENT SETNAME 'a b'
    CLIENT SETNAME name
    CLIENT GETNAME
    CLIENT SETNAME ''
    CLIENT GETNAME
    CLIENT GETNAME x
    CLIENT SETINFO lib-name l
    CLIENT SETINFO LIB-VER 1
    CLIENT SETINFO LIB-VER 'a b'
    CLIENT SETINFO FOO 1
    CLIENT NO-EVICT on
    CLIENT NO-EVICT off
    CLIENT NO-EVICT x
    CLIENT NO-TOUCH on
    CLIENT REPLY on
    CLIENT REPLY x
    CLIENT GETREDIR
    CLIENT ID x
    CLIENT LIST TYPE x
    CLIENT LIST FOO
    CLIENT KILL
    CLIENT KILL 1.2.3.4:5
    CLIENT KILL ID 0
    CLIENT KILL ID 999999999
    CLIENT KILL TYPE x
    CLIENT KILL SKIPME maybe
    CLIENT KILL FOO bar
    CLIENT KILL ADDR
    CLIENT KILL ADDR 1.2.3.4:5 SKIPME yes
    CLIENT UNBLOCK 999999999
    CLIENT UNBLOCK x
    CLIENT UNBLOCK 1 FOO
    COMMAND COUNT x
    FOO
    FOO bar
    CONFIG GET databases
    CONFIG GET maxmemory
    CONFIG SET
    CONFIG SET maxmemory 0
    CONFIG SET nonsense 1
    FLUSHDB x
    FLUSHALL async
    DBSIZE
    DBSIZE x
    WAIT 0 0
    ACL WHOAMI
    ROLE x
    MEMORY USAGE
    MEMORY USAGE nothing
    MEMORY USAGE nothing FOO
    LASTSAVE x
    RESET
"""

TRANSACTIONS = r"""
    MULTI
    MULTI
    SET a 1
    EXEC
    EXEC
    DISCARD
    MULTI
    WATCH a
    GET a
    EXEC
    MULTI
    FOO
    SET a 2
    EXEC
    GET a
    MULTI
    SET a
    EXEC
    MULTI
    SET a 3
    DISCARD
    GET a
    MULTI
    LPUSH a x
    SET b 1
    INCR b
    EXEC
    MULTI
    EXEC
    MULTI x
    EXEC x
    UNWATCH
    WATCH
    WATCH a b
    SET a 5
    MULTI
    GET a
    EXEC
    WATCH a
    UNWATCH
    SET a 6
    MULTI
    GET a
    EXEC
    MULTI
    SELECT 3
    SET other 1
    SELECT 99
    GET other
    SELECT 0
    GET other
    EXEC
    SELECT 3
    GET other
    FLUSHDB
    SELECT 0
    MULTI
    PING
    ECHO x
    BLPOP nothing 1
    CLIENT GETNAME
    EXEC
    MULTI
    FLUSHALL
    DBSIZE
    SET x 1
    DBSIZE
    EXEC
    WATCH a
    RESET
"""

SUBSCRIBED = r"""
    PUBLISH c hello
    PUBLISH c
    PUBSUB
    PUBSUB FOO
    PUBSUB CHANNELS
    PUBSUB CHANNELS a b
    PUBSUB NUMSUB
    PUBSUB NUMSUB a b
    PUBSUB NUMPAT
    PUBSUB NUMPAT x
    PUBSUB SHARDCHANNELS
    PUBSUB SHARDNUMSUB a
    SUBSCRIBE
    UNSUBSCRIBE
    UNSUBSCRIBE c
    PUNSUBSCRIBE
    SUNSUBSCRIBE c
    SUBSCRIBE c
    SUBSCRIBE c
    PSUBSCRIBE c*
    SSUBSCRIBE s
    SSUBSCRIBE t
    PING
    PING x
    GET a
    FOO
    UNSUBSCRIBE c
    PUNSUBSCRIBE c*
    SUNSUBSCRIBE s
    SUNSUBSCRIBE t
    GET a
    RESET
"""


@pytest.mark.parametrize(
    "text", [CONNECTION, TRANSACTIONS, SUBSCRIBED], ids=["connection", "transactions", "pubsub"]
)
def test_the_answers_are_the_same(pair: Pair, text: str) -> None:
    pair.reset()
    _protocol(pair)
    pair.run_text(text)
    _protocol(pair)


def _protocol(pair: Pair) -> None:
    """RESET goes back to RESP2."""
    for client in (*pair.servers, *pair.stores):
        client.call([b"HELLO", b"%d" % client.protocol])
