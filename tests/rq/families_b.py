"""Random commands of sets, sorted sets, streams and scripts."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.rq.differential import UNSTABLE, Words, keys, line, maybe, some, words
from tests.rq.families_a import HASHES, LISTS, STRINGS

_SET = keys("a b")
_ZSET = keys("y z")
_STREAM = keys("p q")

MEMBERS = st.one_of(
    words("a b c d e f g aa ab 1 2 10 '' a b c"),
    st.sampled_from([b"\x00\xff\r\n", b"a\x00", b"L" * 400, b"L" * 401, b"L" * 440, b"M" * 600]),
    st.sampled_from([b"L" * 441, b"L" * 441 + b"\x00", b"L" * 700, b"N" * 900]),
)
"""Members around the sizes at which the store keeps them in another way; some differ far from their start."""

_SIZE = words("1 2 3 1 2 0 -1 x 9223372036854775807")
_LIMIT = maybe("LIMIT", words("0 1 2 -1 x"))

SETS = st.one_of(
    line(words("SADD SADD SADD SREM"), _SET, some(MEMBERS, 5)),
    line("SISMEMBER", _SET, MEMBERS),
    line("SMISMEMBER", _SET, some(MEMBERS)),
    line(words("SMEMBERS SCARD"), _SET),
    line("SMOVE", _SET, _SET, MEMBERS),
    line(words("SINTER SUNION SDIFF"), some(_SET)),
    line(words("SINTERSTORE SUNIONSTORE SDIFFSTORE"), _SET, some(_SET)),
    line("SINTERCARD", _SIZE, some(_SET), _LIMIT),
    line("SRANDMEMBER", _SET, words("1000 0 x -9223372036854775808")),
    line("SPOP", _SET, words("1000 0 -1 x")),
    line("SSCAN", _SET, words("0 0 x"), maybe("MATCH", words("* ? L* a*")), maybe("COUNT", _SIZE)),
)

_SCORES = words("0 1 2 3 1 2 -1 1.5 0.1 inf -inf +inf 1e10 1e20 1e-7 3.0 nan x '' 1e400 ' 1'")
_RANKS = words("0 1 2 3 5 -1 -2 -5 100 -100 x")
_ENDS = words("0 1 2 3 (1 (2 -inf +inf (0.1 1.5 (inf x ( '' nan")
_PART = maybe("LIMIT", words("0 1 2"), words("0 1 3 -1 -2 x"))
_WITH = maybe(words("WITHSCORES withscores x"))
_WEIGHTS = st.one_of(
    maybe("WEIGHTS", some(words("1 2 -1 0.5 inf x"))),
    maybe("AGGREGATE", words("MIN max SUM x")),
)

SORTED_SETS = st.one_of(
    line("ZADD", _ZSET, some(words("NX XX GT LT CH ch"), 2, 0), some(line(_SCORES, MEMBERS))),
    line("ZADD", _ZSET, some(line(_SCORES, MEMBERS), 5)),
    line("ZADD", _ZSET, some(words("NX XX GT LT"), 1, 0), "INCR", some(line(_SCORES, MEMBERS), 2)),
    line("ZINCRBY", _ZSET, _SCORES, MEMBERS),
    line("ZREM", _ZSET, some(MEMBERS)),
    line("ZMSCORE", _ZSET, some(MEMBERS)),
    line(words("ZSCORE ZRANK ZREVRANK"), _ZSET, MEMBERS),
    line(words("ZRANK ZREVRANK"), _ZSET, MEMBERS, words("WITHSCORE x")),
    line("ZCARD", _ZSET),
    line(words("ZRANGE ZREVRANGE"), _ZSET, _RANKS, _RANKS, _WITH),
    line("ZRANGE", _ZSET, _RANKS, _RANKS, maybe("REV"), _PART, _WITH),
    line("ZRANGE", _ZSET, _ENDS, _ENDS, "BYSCORE", maybe("REV"), _PART, _WITH),
    line(words("ZRANGEBYSCORE ZREVRANGEBYSCORE"), _ZSET, _ENDS, _ENDS, _PART, _WITH),
    line(words("ZCOUNT ZREMRANGEBYSCORE"), _ZSET, _ENDS, _ENDS),
    line("ZREMRANGEBYRANK", _ZSET, _RANKS, _RANKS),
    line(words("ZPOPMIN ZPOPMAX"), _ZSET, maybe(_SIZE)),
    line("ZMPOP", _SIZE, some(_ZSET), words("MIN max x"), maybe("COUNT", _SIZE)),
    line(words("BZPOPMIN BZPOPMAX"), some(_ZSET), words("0.001 -1 x")),
    line("BZMPOP", words("0.001 -1"), _SIZE, some(_ZSET), words("MIN MAX"), maybe("COUNT", _SIZE)),
    line(words("ZUNION ZINTER"), _SIZE, some(_ZSET), _WEIGHTS, _WITH),
    line(words("ZUNIONSTORE ZINTERSTORE"), _ZSET, _SIZE, some(_ZSET), _WEIGHTS),
    line("ZDIFF", _SIZE, some(_ZSET), _WITH),
    line("ZDIFFSTORE", _ZSET, _SIZE, some(_ZSET)),
    line("ZINTERCARD", _SIZE, some(_ZSET), _LIMIT),
    line("ZRANGESTORE", _ZSET, _ZSET, _RANKS, _RANKS, maybe("REV")),
    line("ZRANGESTORE", _ZSET, _ZSET, _ENDS, _ENDS, "BYSCORE", _PART),
    line("ZRANDMEMBER", _ZSET, words("1000 0 x -9223372036854775808")),
    line("ZSCAN", _ZSET, words("0 0 x"), maybe("MATCH", words("* ? L*")), maybe("COUNT", _SIZE)),
    line("SADD", words("z other"), some(MEMBERS)),
)

_LEX = st.one_of(words("- + - + x '' ( ["), st.tuples(words("[ ("), MEMBERS).map(b"".join))

LEXICAL = st.one_of(
    line("ZADD", _ZSET, some(line("0", MEMBERS), 5)),
    line("ZREM", _ZSET, MEMBERS),
    line(words("ZRANGEBYLEX ZREVRANGEBYLEX"), _ZSET, _LEX, _LEX, _PART),
    line("ZRANGE", _ZSET, _LEX, _LEX, "BYLEX", maybe("REV"), _PART, maybe("WITHSCORES")),
    line("ZRANGESTORE", _ZSET, _ZSET, _LEX, _LEX, "BYLEX"),
    line(words("ZLEXCOUNT ZREMRANGEBYLEX"), _ZSET, _LEX, _LEX),
    line(words("ZRANK ZREVRANK"), _ZSET, MEMBERS),
    line("ZRANGE", _ZSET, _RANKS, _RANKS),
)
"""All scores are the same, as the commands by members want it."""

_IDS = words("1-1 1-2 2-0 2-5 3 3-1 4-4 5 7-7 9 0-1 0 0-0 x 1-x 18446744073709551615 '' -")
_NEW_IDS = words("1-1 1-* 2-* 2-3 3-* 3 4-1 5-* 6 7-* 8-8 9-* 0-0 0-* x 18446744073709551615-*")
_BOUNDS = words("- + 1 2 3-1 (1-1 (2 (4 5-0 9 ( (- x 0-0 (0-0")
_COUNT = maybe("COUNT", words("1 2 0 -1 x 10"))
_PAIRS = some(line(words("f g ''"), st.sampled_from([b"v", b"", b"\x00\xff", b"w" * 900])))
_TRIM = st.one_of(
    line(words("MAXLEN maxlen"), maybe("="), words("0 1 2 5 -1 x")),
    line("MINID", maybe("="), _IDS),
    line("MAXLEN", "~", "1000", maybe("LIMIT", words("0 5 -1 x"))),
    line("MAXLEN", "3", "LIMIT", "5"),
)

STREAMS = st.one_of(
    line("XADD", _STREAM, _NEW_IDS, _PAIRS),
    line("XADD", _STREAM, _NEW_IDS, _PAIRS),
    line("XADD", _STREAM, maybe("NOMKSTREAM"), _TRIM, _NEW_IDS, some(words("f v"), 4)),
    line("XLEN", _STREAM),
    line(words("XRANGE XREVRANGE"), _STREAM, _BOUNDS, _BOUNDS, _COUNT),
    line("XREAD", _COUNT, "STREAMS", _STREAM, _IDS),
    line("XREAD", _COUNT, "STREAMS", _STREAM, _STREAM, words("0 2 $ 5-1 > x"), words("0 $ 3-1")),
    line("XREAD", "BLOCK", words("1 -1 x"), "STREAMS", _STREAM, words("$ 7 x")),
    line("XDEL", _STREAM, some(_IDS)),
    line("XTRIM", _STREAM, _TRIM),
    line("XSETID", _STREAM, _IDS, maybe("ENTRIESADDED", words("1 10 -1 x"), "MAXDELETEDID", _IDS)),
)

_ANY_COMMAND = st.one_of(STRINGS, HASHES, LISTS, SETS, SORTED_SETS, LEXICAL, STREAMS).filter(
    lambda command: command[0].upper() not in UNSTABLE
)

_CALL = """
local function call(...)
    local answer = redis.pcall(...)
    if type(answer) == 'table' and answer.err then
        answer.err = answer.err:gsub(' Redis', ''):gsub(' Valkey', '')
    end
    return answer
end
"""
"""The product's name in an error's text depends on the server."""
_ONCE = _CALL + "return call(unpack(ARGV))"
_AMONG_OTHERS = _CALL + "return {call(unpack(ARGV)), call('TYPE', KEYS[1]), 3.9, false, 'end'}"


def _in_a_script(command: Words) -> Words:
    return [b"EVAL", _ONCE.encode(), b"0", *command]


def _among_others(command: Words) -> Words:
    key = command[1] if len(command) > 1 else b"nothing"
    return [b"EVAL", _AMONG_OTHERS.encode(), b"1", key, *command]


SCRIPTS = st.one_of(_ANY_COMMAND.map(_in_a_script), _ANY_COMMAND.map(_among_others), _ANY_COMMAND)
"""Commands of all families called by scripts, among others that are not."""

WATCHED_B = words("a b y z p q other nothing")
