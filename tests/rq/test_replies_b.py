"""Answers and refusals of sets, sorted sets, streams and scripts, word for word as a real server gives
them.
"""

from __future__ import annotations

import pytest

from tests.rq.differential import Pair

SETS = r"""
    SADD s
    SADD s a b a
    SADD s a
    SADD text x
    SREM text x
    SET text x
    SADD text a
    SREM text a
    SISMEMBER text a
    SMISMEMBER text a b
    SMISMEMBER nothing a b
    SMISMEMBER s a z b
    SMEMBERS text
    SMEMBERS nothing
    SCARD nothing
    SPOP nothing
    SPOP nothing 1
    SPOP nothing -1
    SPOP nothing x
    SPOP nothing 1 2
    SPOP text
    SPOP s 0
    SRANDMEMBER nothing
    SRANDMEMBER nothing x
    SRANDMEMBER nothing 1
    SRANDMEMBER nothing -9223372036854775808
    SRANDMEMBER s 0
    SRANDMEMBER s 1 2
    SRANDMEMBER s 5
    SMOVE nothing s a
    SMOVE nothing text a
    SMOVE s text nobody
    SMOVE s text a
    SMOVE s s a
    SMOVE s s nobody
    SMOVE s t a
    SMOVE s t b
    EXISTS s
    SMEMBERS t
    SADD u b c d
    SINTER t u
    SINTER t nothing
    SINTER nothing text
    SINTER t u text
    SUNION t u nothing
    SDIFF t u
    SDIFF u t
    SDIFF nothing t
    SINTERSTORE d t u
    SDIFFSTORE t t u
    SMEMBERS t
    SUNIONSTORE text t u
    TYPE text
    SINTERSTORE text t nothing
    EXISTS text
    SINTERCARD 0 t
    SINTERCARD x t
    SINTERCARD 2 t
    SINTERCARD 1 t LIMIT
    SINTERCARD 1 t LIMIT -1
    SINTERCARD 1 t LIMIT x
    SINTERCARD 1 t FOO
    SINTERCARD 1 u LIMIT 2
    SINTERCARD 1 u LIMIT 2 LIMIT 1
    SINTERCARD 2 u u LIMIT 0
    SSCAN s
    SSCAN s x
    SSCAN nothing 0 FOO
    SSCAN u 0 FOO
    SSCAN u 0 COUNT 0
    SSCAN u 0 COUNT x
    SSCAN u 0 MATCH
    SSCAN u 0 MATCH [bc] COUNT 100
    SREM u b c
    SREM u d d
    EXISTS u
    SISMEMBER
"""

SORTED_SETS = r"""
    ZADD z 1
    ZADD z 1 a 2
    ZADD z NX
    ZADD z NX XX 1 a
    ZADD z GT NX 1 a
    ZADD z GT LT 1 a
    ZADD z INCR 1 a 2 b
    ZADD z x a
    ZADD z nan a
    ZADD z 1e400 a
    ZADD z 1e-400 a
    ZADD z '' a
    ZADD z ' 1' a
    ZADD z XX 1 a
    ZADD z XX INCR 1 a
    EXISTS z
    ZADD z 1 a 2.5 b inf c -inf d +3e1 e 1 a
    ZADD z CH 1 a 3 b 7 f
    ZADD z NX CH 9 a 9 g
    ZADD z XX 8 a 8 nobody
    ZADD z GT CH 1 a 10 b
    ZADD z LT CH 1 a 20 b
    ZADD z INCR 1 a
    ZADD z INCR NX 1 a
    ZADD z INCR GT -1 a
    ZADD z INCR inf c
    ZADD z INCR -inf c
    ZINCRBY z 1.5 a
    ZINCRBY z x a
    ZINCRBY z inf d
    ZINCRBY z 1
    ZSCORE z a
    ZSCORE z c
    ZSCORE z nobody
    ZSCORE nothing a
    ZMSCORE z a nobody d
    ZMSCORE nothing a b
    ZCARD z
    ZCARD nothing
    ZRANK z a
    ZREVRANK z a
    ZRANK z a WITHSCORE
    ZRANK z nobody WITHSCORE
    ZRANK z a FOO
    ZRANK z a WITHSCORE x
    ZREM z nobody
    ZREM z d d c
    SET text x
    ZADD text 1 a
    ZADD text x a
    ZCARD text
    ZPOPMIN text 0
    ZRANGE text 0 x
    ZRANGE text 0 -1
"""

SCORES = r"""
    ZADD z 3.2 a 1e20 b 1e21 c 1e-7 d 1.7976931348623157e308 e 123456789.123456789 f 1e17 g 1e22 h
    ZADD z 0.1 i 0.00001 j 12345678901234567 k 1700000000.123456 l 1.5e300 m 12e-6 n 0.00012345678 o
    ZADD z 4611686018427387904 p 4611686018427388928 q -1e18 r 3e-7 s 1234567.1234567 t 100000 u
    ZRANGE z 0 -1 WITHSCORES
    ZADD y 2 a 3 b
    ZADD x -inf b
    SADD s a c
    ZUNION 3 y x s WITHSCORES
    ZUNION 2 y x WEIGHTS 0 1 WITHSCORES
    ZUNION 2 x x WEIGHTS 0 1 WITHSCORES
    ZUNION 2 y x AGGREGATE MAX WITHSCORES
    ZINTER 2 y s WITHSCORES
    ZINTER 2 y nothing
    ZINTERSTORE d 2 y s WEIGHTS 2 10 AGGREGATE MIN
    ZDIFF 2 y s WITHSCORES
    ZDIFF 1 y WEIGHTS 1
    ZDIFFSTORE d 1 y WITHSCORES
    ZDIFFSTORE d 2 y nothing
    ZUNIONSTORE d 1 y WITHSCORES
    ZUNIONSTORE s 1 nothing
    EXISTS s
    ZUNION 0 y
    ZUNION x y
    ZUNION 2 y
    ZUNION 1 y FOO
    ZUNION 1 y WEIGHTS
    ZUNION 1 y WEIGHTS x
    ZUNION 1 y WEIGHTS nan
    ZUNION 1 y WEIGHTS 1 2
    ZUNION 1 y AGGREGATE
    ZUNION 1 y AGGREGATE FOO
    ZUNIONSTORE d 0 y
    ZINTERSTORE d x y
    ZINTERCARD 2 y d
    ZINTERCARD 2 y d LIMIT 1
    ZINTERCARD 1 y LIMIT -1
    ZINTERCARD 1 y LIMIT x
    ZINTERCARD 0 y LIMIT 1
    ZINTERCARD 2 y
    SET text x
    ZUNION 2 y text
"""

RANGES = r"""
    ZADD z 1 a 2 b 2 c 3 d inf e
    ZRANGE z 0 -1
    ZRANGE z 1 2 WITHSCORES
    ZRANGE z -2 100 REV WITHSCORES
    ZRANGE z -100 1
    ZRANGE z 3 1
    ZRANGE z 5 9
    ZRANGE z x 1
    ZRANGE z 0 1 FOO
    ZRANGE z 0 1 LIMIT 0 1
    ZRANGE z 0 1 LIMIT 0
    ZRANGE z 0 1 LIMIT 1 -1
    ZRANGE z 1 2 BYSCORE
    ZRANGE z (1 (3 BYSCORE WITHSCORES
    ZRANGE z 3 1 BYSCORE REV LIMIT 1 1
    ZRANGE z 1 3 BYSCORE REV
    ZRANGE z -inf +inf BYSCORE LIMIT 1 2 WITHSCORES
    ZRANGE z -inf +inf BYSCORE LIMIT 1 x
    ZRANGE z x 1 BYSCORE
    ZRANGE z 0 1 BYSCORE BYLEX
    ZRANGE z 0 1 REV REV
    ZRANGE z 0 1 WITHSCORES WITHSCORES
    ZRANGE z -inf inf BYSCORE LIMIT 1 9223372036854775807
    ZRANGEBYSCORE z -inf inf LIMIT 9223372036854775807 1
    ZREVRANGEBYSCORE z inf -inf LIMIT 2 9223372036854775807
    ZRANGEBYLEX z - + LIMIT 9223372036854775807 9223372036854775807
    ZRANGESTORE stored z -inf inf BYSCORE LIMIT 1 9223372036854775807
    DEL stored
    ZRANGE z 0 1 BYLEX WITHSCORES
    ZRANGE z 0 1 BYLEX
    ZREVRANGE z 0 1 WITHSCORES
    ZREVRANGE z 0 1 REV
    ZRANGEBYSCORE z (2 +inf
    ZRANGEBYSCORE z ( 2
    ZRANGEBYSCORE z '' 2
    ZRANGEBYSCORE z nan 2
    ZRANGEBYSCORE z 2 2 WITHSCORES LIMIT 1 1
    ZRANGEBYSCORE z 2 2 LIMIT 1
    ZRANGEBYSCORE z 1 2 BYSCORE
    ZREVRANGEBYSCORE z +inf -inf LIMIT 0 2 WITHSCORES
    ZREVRANGEBYSCORE z inf inf
    ZCOUNT z (1 2
    ZCOUNT z -inf +inf
    ZCOUNT z x y
    ZRANGESTORE d z 1 2
    ZRANGESTORE d z 3 1 BYSCORE REV LIMIT 0 2
    ZRANGE d 0 -1 WITHSCORES
    ZRANGESTORE d z 0 1 WITHSCORES
    ZRANGESTORE d nothing 0 1
    EXISTS d
    ZREMRANGEBYRANK z x 1
    ZREMRANGEBYSCORE z x 1
    ZREMRANGEBYLEX z x 1
    ZREMRANGEBYRANK z 1 1
    ZREMRANGEBYSCORE z (3 inf
    ZADD l 0 a 0 ab 0 b 0 ''
    ZRANGEBYLEX l - +
    ZRANGEBYLEX l [a (b
    ZRANGEBYLEX l (a +
    ZRANGEBYLEX l + -
    ZRANGEBYLEX l a (b
    ZRANGEBYLEX l - + LIMIT 1 2
    ZREVRANGEBYLEX l + - LIMIT 0 1
    ZREVRANGEBYLEX l + - WITHSCORES
    ZRANGE l [b [a BYLEX REV
    ZLEXCOUNT l [a +
    ZLEXCOUNT l a b
    ZREMRANGEBYLEX l [a (b
    ZRANGE l 0 -1
"""

POPPING = r"""
    ZADD z 1 a 2 b 3 c 4 d
    ZPOPMIN z
    ZPOPMAX z 1
    ZPOPMIN z 0
    ZPOPMIN z -1
    ZPOPMIN z x
    ZPOPMIN z 1 2
    ZPOPMIN nothing
    ZPOPMIN nothing 1
    ZMPOP 0 z MIN
    ZMPOP x z MIN
    ZMPOP 2 z MIN
    ZMPOP 1 z MIDDLE
    ZMPOP 1 z MIN COUNT
    ZMPOP 1 z MIN COUNT 0
    ZMPOP 1 z MIN COUNT x
    ZMPOP 1 z MIN COUNT 1 COUNT 1
    ZMPOP 2 nothing z MIN COUNT 5
    ZMPOP 1 z MAX
    EXISTS z
    BZPOPMIN z 0.001
    BZPOPMIN z -1
    BZPOPMIN z x
    BZPOPMIN z inf
    BZMPOP 0.001 1 z MIN
    BZMPOP x 1 z MIN
    ZADD z 1 a 2 b 3 c 4 d
    BZPOPMIN nothing z 0
    BZPOPMAX z 0
    BZMPOP 0 2 nothing z MIN COUNT 2
    SET text x
    BZPOPMIN text z 0.001
    ZMPOP 2 text z MIN
    ZADD z 1.5 a
    ZRANDMEMBER z
    ZRANDMEMBER z 5
    ZRANDMEMBER z 5 WITHSCORES
    ZRANDMEMBER z -2
    ZRANDMEMBER z 0
    ZRANDMEMBER z x
    ZRANDMEMBER z 1 FOO
    ZRANDMEMBER z -9223372036854775808
    ZRANDMEMBER z -4611686018427387905 WITHSCORES
    ZRANDMEMBER nothing
    ZRANDMEMBER nothing 2
    ZSCAN z 0
    ZSCAN z x
    ZSCAN nothing 0 FOO
    ZSCAN z 0 COUNT 0
    ZSCAN z 0 MATCH b
"""

STREAMS = r"""
    XADD s 1-1 a 1 b 2
    XADD s 1-1 a 1
    XADD s 0-0 a 1
    XADD s 1 a 1
    XADD s 1-* a 2
    XADD s 5 a 3
    XADD s x a 1
    XADD s 1-x a 1
    XADD s 1-1-1 a 1
    XADD s - a 1
    XADD s * a
    XADD s * a 1 b
    XADD s MAXLEN 5
    XADD s MAXLEN 5 * a
    XADD s MAXLEN -1 * a 1
    XADD s MAXLEN x * a 1
    XADD s MAXLEN = 5 LIMIT 5 * a 1
    XADD s MAXLEN ~ 5 LIMIT -5 * a 1
    XADD s MAXLEN 5 MINID 5 * a 1
    XADD s MAXLEN 5 MAXLEN 5 * a 1
    XTRIM s MINID 0 MINID 0
    XADD s LIMIT 5 * a 1
    XADD s MINID x * a 1
    XADD s 18446744073709551616-1 a 1
    XADD n NOMKSTREAM * a 1
    EXISTS n
    XADD n 0-* a 1
    XADD s MAXLEN 2 6-1 a 4
    XLEN s
    XRANGE s - +
    XRANGE s (1-2 +
    XRANGE s 5 5
    XRANGE s - + COUNT 0
    XRANGE s - + COUNT -1
    XRANGE s - + COUNT x
    XRANGE s - + COUNT
    XRANGE s - + FOO 1
    XRANGE s - + COUNT 1
    XRANGE s (- +
    XRANGE s (18446744073709551615-18446744073709551615 +
    XRANGE s - (0-0
    XRANGE nothing - +
    XREVRANGE s + -
    XREVRANGE s + - COUNT 1
    XREVRANGE s (6-1 5
    XREVRANGE s (0-0 x
    XRANGE s x (0-0
    XREAD STREAMS s 0
    XREAD STREAMS s n nothing 5 0 0
    XREAD COUNT 1 STREAMS s n 0 0
    XREAD COUNT x STREAMS s 0
    XREAD STREAMS s $
    XREAD STREAMS s +
    XREAD STREAMS s >
    XREAD STREAMS s -
    XREAD STREAMS s
    XREAD STREAMS s n 0
    XREAD BLOCK 1 STREAMS s $
    XREAD BLOCK -1 STREAMS s 0
    XREAD BLOCK x STREAMS s 0
    XREAD BLOCK 10 STREAMS
    XREAD FOO 1 STREAMS s 0
    XREAD GROUP g c STREAMS s 0
    XREAD NOACK STREAMS s 0
    XDEL s 5 9-9
    XDEL s 6-1 x
    XDEL nothing x
    XLEN s
    XTRIM s MAXLEN
    XTRIM s FOO 1
    XTRIM s MAXLEN = 1 LIMIT 5
    XTRIM s MAXLEN 1 FOO
    XTRIM nothing MAXLEN -1
    XTRIM s MINID 6
    XSETID s 1-1
    XSETID s x
    XSETID nothing 1-1
    XSETID s 9-9
    XSETID s 9-9 ENTRIESADDED 5 MAXDELETEDID 10-1
    XSETID s 9-9 ENTRIESADDED -1 MAXDELETEDID 1-1
    XADD s 9-9 a 1
    XADD s 18446744073709551615-18446744073709551615 a 1
    XADD s * a 1
    XDEL n 0-1
    XLEN n
    TYPE n
    XRANGE n - +
    XREAD STREAMS n 0
    XINFO STREAM nothing
    XINFO FOO
    XINFO
    SET text x
    XADD text * a 1
    XADD text x a 1
    XLEN text
    XRANGE text - +
    XRANGE text x +
    XREAD STREAMS text 0
    XREAD STREAMS nothing text 0 0
    XDEL text x
    XTRIM text MAXLEN 1
    XSETID text 1-1
    XINFO STREAM text
"""

SCRIPTS = r"""
    EVAL
    EVAL 'return 1'
    EVAL 'return 1' -1
    EVAL 'return 1' x
    EVAL 'return 1' 2 a
    EVAL 'return 1' 0
    EVAL 'return -1.9' 0
    EVAL 'return "1.9"' 0
    EVAL 'return' 0
    EVAL '' 0
    EVAL 'return true' 0
    EVAL 'return false' 0
    EVAL 'return {1, 2, nil, 3}' 0
    EVAL 'return {1, "a", {2, false, true}, 3.7}' 0
    EVAL 'return {ok = "fine"}' 0
    EVAL 'return {ok = "fi\nne"}' 0
    EVAL 'return {err = "bad"}' 0
    EVAL 'return {err = "MY bad"}' 0
    EVAL 'return {err = "x", ok = "a"}' 0
    EVAL 'return {1, ok = "a"}' 0
    EVAL 'return {ok = 5}' 0
    EVAL 'return {a = 1}' 0
    EVAL 'return {double = 3.5}' 0
    EVAL 'return {map = {a = 1}}' 0
    EVAL 'return {set = {a = true}}' 0
    EVAL 'return redis.error_reply("bad")' 0
    EVAL 'return redis.error_reply("MY bad")' 0
    EVAL 'return redis.error_reply("-MY bad")' 0
    EVAL 'return redis.error_reply(5)' 0
    EVAL 'return redis.status_reply("S")' 0
    EVAL 'return redis.status_reply()' 0
    EVAL 'return redis.sha1hex("")' 0
    EVAL 'return redis.sha1hex(5)' 0
    EVAL 'return {KEYS[1], KEYS[2], ARGV[1], #ARGV}' 2 a b c d
    EVAL 'return redis.call("SET", "n", 3.5)' 0
    EVAL 'return redis.call("SET", "n", 1e22)' 0
    GET n
    EVAL 'return redis.call("SET", "n", 12345678901234567)' 0
    GET n
    EVAL 'return redis.call("GET", "nothing") == false' 0
    EVAL 'return redis.call("SET", "a", 1).ok' 0
    EVAL 'return redis.pcall("LPUSH", "a", 1)' 0
    EVAL 'return redis.pcall("LPUSH", "a", 1).err' 0
    EVAL 'return redis.pcall("SINTERCARD", 0, "a")' 0
    HSET h a 1
    ZADD z 1.5 a
    SADD s a
    EVAL 'return redis.call("HGETALL", "h")' 0
    EVAL 'return redis.call("SMEMBERS", "s")' 0
    EVAL 'return redis.call("ZSCORE", "z", "a")' 0
    EVAL 'return redis.call("ZRANGE", "z", 0, -1, "WITHSCORES")' 0
    EVAL 'redis.setresp(3) return redis.call("HGETALL", "h")' 0
    EVAL 'redis.setresp(3) return redis.call("HGETALL", "h").map.a' 0
    EVAL 'redis.setresp(3) return redis.call("SMEMBERS", "s")' 0
    EVAL 'redis.setresp(3) return redis.call("SMEMBERS", "s").set.a' 0
    EVAL 'redis.setresp(3) return redis.call("ZSCORE", "z", "a")' 0
    EVAL 'redis.setresp(3) return redis.call("ZSCORE", "z", "a").double' 0
    EVAL 'redis.setresp(3) return redis.call("ZRANGE", "z", 0, -1, "WITHSCORES")' 0
    EVAL 'redis.setresp(3) return redis.call("HGET", "h", "no")' 0
    EVAL 'redis.setresp(3) return redis.call("HGET", "h", "no") == nil' 0
    EVAL 'redis.setresp(3) return true' 0
    EVAL 'redis.setresp(3) return false' 0
    EVAL 'redis.setresp(3) return {true, false}' 0
    EVAL 'return redis.call("BLPOP", "nothing", 0)' 0
    EVAL 'return redis.call("TYPE", "h")' 0
    EVAL 'return redis.replicate_commands()' 0
    EVAL 'return math.huge' 0
    EVAL 'return 2^53' 0
    EVAL 'return {redis.call, 1}' 0
    EVAL 'return "a", "b"' 0
    EVAL 'local ok, e = pcall(error, {err = "x"}) return {ok, e}' 0
    EVAL 'local ok, e = pcall(error, {code = 5}) return e.code' 0
    EVAL 'return select("#", pcall(function() return 1, nil, 3 end))' 0
    EVAL 'return {xpcall(function() error("a", 0) end, function(e) return "handled " .. e end)}' 0
    EVAL 'local f = coroutine.wrap(function() coroutine.yield(1) end) return {f(), f()}' 0
    EVAL 'return loadstring("return 5")()' 0
    EVAL 'return {unpack({1, 2, 3})}' 0
    EVAL 'return string.format("%5.2f|%s", 3.14159, "y")' 0
    EVAL 'syntax error here' 0
    EVAL 'return 1 +' 0
    EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
    EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0
    EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db
    EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
    EVAL_RO 'return redis.call("GET", "a")' 0
    SCRIPT LOAD 'return 7'
    SCRIPT LOAD 'return +'
    SCRIPT LOAD
    SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x
    SCRIPT EXISTS
    SCRIPT FLUSH FOO
    SCRIPT FLUSH ASYNC
    SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db
    SCRIPT KILL
    SCRIPT FOO
    SCRIPT
"""

LIBRARIES = r"""
    EVAL 'return cjson.encode({1, 2.5, "a/b", {a = true}, cjson.null, {}})' 0
    EVAL 'return cjson.encode({[1] = 1, [3] = 3})' 0
    EVAL 'return cjson.encode({[1.5] = 2})' 0
    EVAL 'return cjson.encode(12345678901234567) .. cjson.encode(1/3)' 0
    EVAL 'return cjson.encode("a\t\0\"\\")' 0
    EVAL 'return cjson.encode(cjson.decode(ARGV[1]))' 0 '[1, -2.5e3, "x", {"a": {"b": []}}]'
    EVAL 'return cjson.decode(ARGV[1])[1]' 0 '["\u00e9\ud83d\ude00\n\/"]'
    EVAL 'return cjson.decode(ARGV[1])[1] == cjson.null' 0 '[null]'
    EVAL 'return tostring(cjson.decode("1.50")) .. tostring(cjson.decode("true"))' 0
    EVAL 'return cmsgpack.pack({1, "a", 1.5, 0.1, true, false, -5, 300, 65536, 2^40, -2^40, {}})' 0
    EVAL 'return cmsgpack.pack({a = {1}}, string.rep("x", 40), nil)' 0
    EVAL 'return {cmsgpack.unpack(cmsgpack.pack(1.5, "a", {1, {2}}, nil, true, -300))}' 0
    EVAL 'return bit.band(255, 15) + bit.bor(1, 2, 4) + bit.bxor(5, 3) + bit.bnot(0)' 0
    EVAL 'return {bit.lshift(1, 31), bit.rshift(-1, 1), bit.arshift(-4, 1), bit.lshift(1, 33)}' 0
    EVAL 'return {bit.rol(0x12345678, 8), bit.ror(0x12345678, 8), bit.bswap(0x12345678)}' 0
    EVAL 'return {bit.tohex(255, 4), bit.tohex(255), bit.tohex(255, -4), bit.tobit(2^32 + 5)}' 0
    EVAL 'return struct.pack(">BbHhLlI4i4fdc3s", 1, -1, 2, -2, 3, -3, 4, -4, 1.5, 2.5, "abcd", "q")' 0
    EVAL 'return {struct.unpack("<I2hc2s", struct.pack("<I2hc2s", 5, -6, "ab", "q"))}' 0
    EVAL 'return struct.size(">I2hc5")' 0
"""

_TEXTS = {
    "sets": SETS,
    "sorted sets": SORTED_SETS,
    "scores": SCORES,
    "ranges": RANGES,
    "popping": POPPING,
    "streams": STREAMS,
    "scripts": SCRIPTS,
    "libraries": LIBRARIES,
}


@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_each_answer_is_that_of_a_real_server(pair: Pair, text: str) -> None:
    pair.reset()
    pair.run_text(text)
