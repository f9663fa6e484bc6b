"""Answers and refusals of strings, keys, hashes and lists, word for word as a real server gives them."""

from __future__ import annotations

import pytest

from tests.rq.differential import Pair

STRINGS = r"""
    GET
    GET a b
    SET s
    SET s 1 EX
    SET s 1 EX 0
    SET s 1 EX x
    SET s 1 EX ''
    SET s 1 EX 10 PX 10
    SET s 1 EX 10 EX 100000
    SET s 1 EX 9223372036854775807
    SET s 1 PX 9223372036854775807
    SET s 1 EXAT 9223372036854775
    SET s 1 NX XX
    SET s 1 KEEPTTL EX 1
    SET s 1 PERSIST
    SET s 1 FOO
    SET s 1 NX GET
    SET s 2 NX GET
    SET s 2 XX GET
    SET s 3 EX 100000
    SET s 4 KEEPTTL
    SET s 5 GET
    PTTL s
    SET s 6 EXAT 1
    GET s
    HSET h f v
    SET h 1 GET
    SET h 1 NX GET
    SETEX s 0 x
    SETEX s x x
    PSETEX s -1 x
    GETEX s EX 0
    SET s 1
    GETEX s EX
    GETEX s KEEPTTL
    GETEX s EX 10 PERSIST
    GETEX s EX 100000
    GETEX s
    GETEX s persist
    GETEX s PXAT 1
    EXISTS s
    GETEX h
    SET h string KEEPTTL
    TYPE h
    MSET a 1 b
    MSETNX a 1 b
    MSET a 1 a 2
    GET a
    MSETNX n 1 a 1
    MSETNX n 1 n 2
    GET n
    SET i 9223372036854775807
    INCR i
    INCRBY i -1
    INCRBY i x
    INCRBY i 9223372036854775808
    DECRBY i -9223372036854775808
    SET i -9223372036854775808
    DECR i
    SET i ' 1'
    INCR i
    SET i 01
    INCR i
    SET f 3.0
    INCRBYFLOAT f 1.000000000000000005
    INCRBYFLOAT f 1e-17
    INCRBYFLOAT f -3.0e0
    INCRBYFLOAT f inf
    INCRBYFLOAT f nan
    INCRBYFLOAT f 1e5000
    INCRBYFLOAT f ' 1'
    INCRBYFLOAT f +.5
    INCRBYFLOAT f 1e20
    SET f x
    INCRBYFLOAT f 1
    SET f inf
    INCRBYFLOAT f x
    INCRBYFLOAT f 1
    SETRANGE s -1 x
    SETRANGE s x x
    SETRANGE s 536870912 x
    SETRANGE s 9223372036854775807 x
    SETRANGE nothing 5 ''
    SETRANGE part 5 abc
    GETRANGE part 0 -1
    GETRANGE part -3 -1
    GETRANGE part -1 -3
    GETRANGE part 5 100
    GETRANGE part -100 0
    GETRANGE part x 1
    GETRANGE nothing 0 -1
    SUBSTR part 5 6
    SETBIT b -1 1
    SETBIT b 1 2
    SETBIT b 4294967296 1
    SETBIT b 7 1
    SETBIT b 20 1
    SETBIT b 7 0
    GETBIT b 20
    GETBIT b 1000
    GETBIT b x
    SET b foobar
    BITCOUNT b
    BITCOUNT b 0
    BITCOUNT b 0 x
    BITCOUNT b 1 1
    BITCOUNT b 5 30 BIT
    BITCOUNT b -3 -1 bit
    BITCOUNT b 0 1 FOO
    BITCOUNT b 0 1 BIT BIT
    BITCOUNT nothing 0 x
"""

KEYS = r"""
    SET s 1
    SET t 2
    RPUSH l a b c
    HSET h f v
    DEL
    DEL s s nothing
    EXISTS t t t nothing
    TOUCH t l nothing
    TYPE nothing
    TYPE l
    EXPIRE t x
    EXPIRE t 10 FOO
    EXPIRE t 10 NX XX
    EXPIRE t 10 NX GT
    EXPIRE t 10 GT LT
    EXPIRE t 100000 XX GT
    EXPIRE t 100000 GT
    EXPIRE t 100000 LT
    EXPIRE t 200000 XX GT
    EXPIRE t 100000 xx gt
    EXPIRE t 50000 NX
    EXPIRE t 9223372036854775807
    EXPIRE t -9223372036854775807
    PEXPIRE t 9223372036854775807
    EXPIREAT t 9223372036854775807
    EXPIRE nothing x
    EXPIRE nothing 1 FOO
    EXPIRE nothing 1
    PEXPIREAT t 4102444800499
    EXPIRETIME t
    PEXPIRETIME t
    PEXPIREAT t 4102444800500
    EXPIRETIME t
    PERSIST t
    PERSIST t
    TTL t
    PTTL nothing
    EXPIRETIME nothing
    EXPIRE t -1
    EXISTS t
    MOVE l 0
    MOVE l x
    MOVE l 16
    MOVE l -1
    MOVE nothing 1
    COPY l l
    COPY l m DB 16
    COPY l m DB x
    COPY l m DB
    COPY l m FOO
    COPY nothing nothing
    COPY nothing m
    EXPIRE l 100000
    COPY l m
    COPY h m
    COPY h m REPLACE
    COPY l l DB 1
    MOVE l 1
    HGETALL m
    RENAME nothing x
    RENAME nothing nothing
    RENAME l l
    RENAMENX l l
    RENAMENX l m
    RENAMENX nothing x
    RENAME l m
    LRANGE m 0 -1
    SCAN x
    SCAN -1
    SCAN ''
    SCAN 0 FOO
    SCAN 0 MATCH
    SCAN 0 COUNT 0
    SCAN 0 COUNT x
    SCAN 0 TYPE foo
    SCAN 0 TYPE HASH
    SCAN 0 TYPE list MATCH ? COUNT 1000
    OBJECT
    OBJECT FOO x
    OBJECT ENCODING
    OBJECT FREQ m
    OBJECT FREQ nothing
    OBJECT IDLETIME m
    OBJECT refcount m
    OBJECT ENCODING nothing
    OBJECT ENCODING h
    OBJECT ENCODING m
    SET e 12
    OBJECT ENCODING e
    SET e -0
    OBJECT ENCODING e
    SET e 12345678901234567890
    OBJECT ENCODING e
    SET e 12345678901234567890123456789012345678901234
    OBJECT ENCODING e
    SETRANGE e 200 x
    OBJECT ENCODING e
"""

HASHES = r"""
    SET s x
    HSET h a
    HSET h a 1 b
    HMSET h a 1 b
    HSET h a 1 a 2
    HMSET h b 2 c x
    HGETALL h
    HGETALL nothing
    HKEYS h
    HVALS h
    HKEYS nothing
    HGET h nothing
    HGET nothing f
    HMGET h a nothing b
    HMGET nothing a b
    HSETNX h a 3
    HSETNX h d 3
    HEXISTS h d
    HEXISTS nothing d
    HSTRLEN h c
    HSTRLEN nothing c
    HLEN h
    HDEL h d d nothing
    HDEL nothing d
    HINCRBY h c 1
    HINCRBY h c x
    HINCRBY h a 9223372036854775807
    HINCRBY h new -5
    HINCRBY h new -9223372036854775808
    HINCRBYFLOAT h a inf
    HINCRBYFLOAT h a nan
    HINCRBYFLOAT h a x
    HINCRBYFLOAT h c 1
    HINCRBYFLOAT h new 1.5e2
    HINCRBYFLOAT h newer 0.1
    HINCRBYFLOAT h newer 0.2
    HSCAN h x
    HSCAN nothing x
    HSCAN nothing 0
    HSCAN nothing 0 FOO
    HSCAN h 0 COUNT 0
    HSCAN h 0 COUNT x
    HSCAN h 0 TYPE hash
    HSCAN h 0 MATCH
    HSCAN h 0 MATCH n*
    HSCAN h 99999999999999999999999999
    HSCAN h -1
    HRANDFIELD h 2 FOO
    HRANDFIELD h x
    HRANDFIELD h 1 WITHVALUES x
    HRANDFIELD h -9223372036854775808
    HRANDFIELD h -9223372036854775808 WITHVALUES
    HRANDFIELD h -9223372036854775807 WITHVALUES
    HRANDFIELD h 9223372036854775807 WITHVALUES
    HRANDFIELD nothing 1
    HRANDFIELD nothing 1 WITHVALUES
    HRANDFIELD nothing
    HRANDFIELD h 0
    DEL h
    HSET h a 1
    HRANDFIELD h
    HRANDFIELD h 5
    HRANDFIELD h 5 WITHVALUES
    HRANDFIELD h -2 withvalues
    HDEL h a
    EXISTS h
    HSET s a 1
    HGETALL s
    HSCAN s 0
    HINCRBY s a x
    HDEL s a
"""

LISTS = r"""
    SET s x
    LPUSH l
    LPUSHX l 1
    RPUSH l 1 2 3 2 1
    LPUSH l a b
    RPUSHX l z
    LRANGE l 0 -1
    LRANGE l -3 -2
    LRANGE l 5 2
    LRANGE l -100 100
    LRANGE l x 1
    LRANGE nothing x 1
    LINDEX nothing x
    LINDEX l x
    LINDEX l -8
    LINDEX l -9
    LINDEX l 7
    LINDEX l 8
    LSET nothing x y
    LSET l x y
    LSET l 9 y
    LSET l -1 y
    LPOS l 2 RANK 0
    LPOS l 2 RANK x
    LPOS l 2 RANK -9223372036854775808
    LPOS l 2 RANK -9223372036854775807
    LPOS l 2 COUNT -1
    LPOS l 2 COUNT x
    LPOS l 2 MAXLEN -1
    LPOS l 2 MAXLEN x
    LPOS l 2 FOO 1
    LPOS l 2 COUNT
    LPOS l 2 COUNT 0
    LPOS l 2 RANK -1 COUNT 0
    LPOS l 2 RANK 2
    LPOS l 2 RANK -2 COUNT 1
    LPOS l 2 RANK 3 COUNT 1
    LPOS l 2 MAXLEN 3
    LPOS l 2 MAXLEN 4 COUNT 9
    LPOS l 2 rank -1 maxlen 5
    LPOS nothing 2 COUNT 0
    LPOS nothing 2
    LPOS s 2
    LPOP l x
    LPOP l -1
    LPOP l 1 1
    LPOP l 0
    LPOP nothing 0
    LPOP nothing
    RPOP l 2
    LPOP l
    LMPOP 0 l LEFT
    LMPOP x l LEFT
    LMPOP 1 l LEFT COUNT 0
    LMPOP 1 l LEFT COUNT x
    LMPOP 1 l UP
    LMPOP 2 l LEFT
    LMPOP 1 l LEFT COUNT 1 COUNT 2
    LMPOP 1 nothing LEFT
    LMPOP 1 s LEFT
    LMPOP 2 nothing l right count 2
    BLPOP l x
    BLPOP l -1
    BLPOP l 1e300
    BLPOP l inf
    BLPOP l nan
    BLPOP s 1
    BLPOP nothing s l 1
    BLPOP nothing l 0
    BRPOP l 0
    BLMPOP -1 1 l LEFT
    BLMPOP 1 0 l LEFT
    RPUSH l 1 2 3 2 1
    BLMPOP 0 1 l RIGHT COUNT 2
    LMOVE l l LEFT UP
    LMOVE l s LEFT LEFT
    LMOVE nothing s LEFT LEFT
    LMOVE l l left right
    LMOVE l m RIGHT LEFT
    BLMOVE l m LEFT RIGHT 0
    BLMOVE l s LEFT RIGHT 0
    BRPOPLPUSH m m 0
    RPOPLPUSH m nothing
    LINSERT l FOO 1 2
    LINSERT nothing BEFORE 1 2
    LINSERT l BEFORE nothing 2
    RPUSH n a b c d
    LINSERT n BEFORE c x
    LINSERT n AFTER c y
    LINSERT n BEFORE a first
    LINSERT n AFTER d last
    LRANGE n 0 -1
    LREM n 0 nothing
    LREM n x a
    LREM nothing x a
    LREM n -9223372036854775808 a
    LREM nothing -9223372036854775808 a
    LREM n -9223372036854775807 nothing
    LREM s 0 a
    LTRIM n 1 -2
    LTRIM n x 0
    LTRIM nothing 0 1
    LTRIM n 3 1
    EXISTS n
    RPUSH s a
    LLEN s
    LRANGE s 0 -1
"""


STREAMS = r"""
    SET s x
    XADD t 1-1 f v
    XREAD STREAMS s t x 0
    XREAD STREAMS t s x 0
    XREAD STREAMS t s 0 x
    XREAD STREAMS t s > 0
    XREAD BLOCK 1 STREAMS s $
"""


@pytest.mark.contract("RQC-02")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(STRINGS, id="strings"),
        pytest.param(KEYS, id="keys"),
        pytest.param(HASHES, id="hashes"),
        pytest.param(LISTS, id="lists"),
        pytest.param(STREAMS, id="streams"),
    ],
)
def test_each_answer_is_word_for_word_the_servers(pair: Pair, text: str) -> None:
    pair.reset()
    pair.run_text(text)
