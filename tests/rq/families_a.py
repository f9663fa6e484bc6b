"""Random commands of strings, keys, hashes and lists."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.rq.differential import (
    COUNTS,
    FIELDS,
    FLOATS,
    INTEGERS,
    SMALL,
    VALUES,
    keys,
    line,
    maybe,
    some,
    words,
)

FAR = words("1000 2000 5000 1000000")
"""Seconds or milliseconds that no test lasts."""
NO_TIME = words("0 -1 x '' 9223372036854775807")

_STRING = keys("s t")
_LIST = keys("k l")
_HASH = keys("h i")
_ANY = words("s t k l h i other nothing ''")
WATCHED = words("s t k l h i")
"""Keys of all of them."""
_OFFSETS = words("0 1 2 5 20 -1 7 x")

_LASTS = st.one_of(
    maybe(words("EX PX ex"), words("1000000 2000000")),
    maybe(words("EX PX"), NO_TIME),
    line(words("EXAT PXAT"), words("4102444800 4102444800000 1")),
)

STRINGS = st.one_of(
    line("GET", _STRING),
    line("SET", _STRING, VALUES),
    line("SET", _STRING, VALUES, maybe(words("NX XX GET")), maybe(words("GET KEEPTTL NX")), _LASTS),
    line("SETNX", _STRING, VALUES),
    line("SETEX", _STRING, st.one_of(FAR, NO_TIME), VALUES),
    line("PSETEX", _STRING, st.one_of(words("1000000"), NO_TIME), VALUES),
    line("GETSET", _STRING, VALUES),
    line("GETDEL", _STRING),
    line("GETEX", _STRING, st.one_of(_LASTS, maybe("PERSIST"))),
    line("MGET", some(_ANY)),
    line("MSET", some(line(_STRING, VALUES))),
    line("MSETNX", some(line(_STRING, VALUES))),
    line("MSET", some(VALUES)),
    line("APPEND", _STRING, VALUES),
    line("STRLEN", _STRING),
    line(words("INCR DECR"), _STRING),
    line(words("INCRBY DECRBY"), _STRING, INTEGERS),
    line("INCRBYFLOAT", _STRING, FLOATS),
    line(words("GETRANGE SUBSTR"), _STRING, SMALL, SMALL),
    line("SETRANGE", _STRING, _OFFSETS, VALUES),
    line("SETBIT", _STRING, _OFFSETS, words("0 1 2 x")),
    line("GETBIT", _STRING, _OFFSETS),
    line("BITCOUNT", _STRING, maybe(SMALL), maybe(SMALL), maybe(words("BIT BYTE x"))),
)

KEYS = st.one_of(
    line(words("DEL UNLINK EXISTS TOUCH"), some(_ANY)),
    line("TYPE", _ANY),
    line(words("RENAME RENAMENX"), _ANY, _ANY),
    line("COPY", _ANY, _ANY, maybe(words("REPLACE replace x")), maybe("DB", words("0 1 16 x"))),
    line("MOVE", _ANY, words("0 1 16 -1 x")),
    line(
        "EXPIRE",
        _ANY,
        st.one_of(FAR, NO_TIME),
        maybe(words("NX XX GT LT x")),
        maybe(words("GT LT")),
    ),
    line("PEXPIRE", _ANY, words("1000000 2000000 -5"), maybe(words("NX XX GT LT"))),
    line("EXPIREAT", _ANY, words("4102444800 4102444801 1 x"), maybe(words("NX XX GT LT"))),
    line("PEXPIREAT", _ANY, words("4102444800000 4102444800001 1"), maybe(words("NX XX GT LT"))),
    line(words("TTL PTTL EXPIRETIME PEXPIRETIME PERSIST"), _ANY),
    line("KEYS", words("* ? [a-k] [^a-k] oth* *e* \\\\s x")),
    line(
        "SCAN",
        words("0 0 0 x -1"),
        maybe("MATCH", words("* ? o* [h-l]")),
        maybe("COUNT", COUNTS),
        maybe("TYPE", words("string list hash HASH set x")),
    ),
    line("OBJECT", words("REFCOUNT IDLETIME FREQ freq x"), _ANY),
)

HASHES = st.one_of(
    line(words("HSET HMSET HSET"), _HASH, some(line(FIELDS, VALUES))),
    line(words("HSET HMSET"), _HASH, some(VALUES)),
    line("HSETNX", _HASH, FIELDS, VALUES),
    line("HGET", _HASH, FIELDS),
    line("HMGET", _HASH, some(FIELDS)),
    line(words("HGETALL HKEYS HVALS HLEN"), _HASH),
    line("HDEL", _HASH, some(FIELDS)),
    line(words("HEXISTS HSTRLEN"), _HASH, FIELDS),
    line("HINCRBY", _HASH, words("f count"), INTEGERS),
    line("HINCRBYFLOAT", _HASH, words("f count"), FLOATS),
    line("HSCAN", _HASH, words("0 0 x"), maybe("MATCH", words("* ? f* x")), maybe("COUNT", COUNTS)),
)

_ENTRIES = st.one_of(words("a b c a b c '' d"), VALUES)
_ENDS = words("LEFT RIGHT left x LEFT RIGHT")

LISTS = st.one_of(
    line(words("LPUSH RPUSH LPUSHX RPUSHX LPUSH RPUSH"), _LIST, some(_ENTRIES, 5)),
    line(words("LPOP RPOP"), _LIST, maybe(SMALL)),
    line("LLEN", _LIST),
    line("LRANGE", _LIST, INTEGERS, INTEGERS),
    line("LINDEX", _LIST, INTEGERS),
    line("LSET", _LIST, SMALL, _ENTRIES),
    line("LREM", _LIST, SMALL, _ENTRIES),
    line("LTRIM", _LIST, SMALL, INTEGERS),
    line("LINSERT", _LIST, words("BEFORE AFTER after x"), _ENTRIES, _ENTRIES),
    line(
        "LPOS",
        _LIST,
        _ENTRIES,
        maybe("RANK", SMALL),
        maybe("COUNT", SMALL),
        maybe("MAXLEN", SMALL),
    ),
    line("LMOVE", _LIST, _LIST, _ENDS, _ENDS),
    line("RPOPLPUSH", _LIST, _LIST),
    line("LMPOP", words("1 2 1 3 0 x"), some(_LIST), _ENDS, maybe("COUNT", COUNTS)),
)

BLOCKING = st.one_of(
    line(words("BLPOP BRPOP"), some(_LIST), words("0.001 -1 x")),
    line("BLMPOP", words("0.001 -1"), words("1 2 1"), some(_LIST), _ENDS, maybe("COUNT", COUNTS)),
    line("BLMOVE", _LIST, _LIST, _ENDS, _ENDS, words("0.001 x")),
    line("BRPOPLPUSH", _LIST, _LIST, words("0.001 x")),
)
