"""Scripts that are done without Lua, because they take a command or more for each entry of a list.

RQ empties a queue with a script of one form: it takes a job's id from a list, until there is none, and
deletes keys whose names are made of the id. Done in one go, in the order of the names, this takes a
quarter of the time. A script of any other form is not touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from equeue_rq._commands._table import Call
from equeue_rq._messages import WrongType
from equeue_rq._types.list import List

Shortcut = Callable[[Call, list[bytes]], int | None]
"""Given the script's keys; None: it has changed nothing, and Lua has to do it."""

_FORM = re.compile(
    rb'(?P<heads>(?:local \w+ = "[^"\\]*" )+)'
    rb"local (?P<list>\w+) = KEYS\[1\] "
    rb"local (?P<count>\w+) = 0 "
    rb"while true do "
    rb'local (?P<id>\w+) = redis\.call\("lpop", (?P=list)\) '
    rb"if (?P=id) == false then break end "
    rb'(?P<deletes>(?:redis\.call\("del", [^()]+\) )+)'
    rb"(?P=count) = (?P=count) \+ 1 "
    rb"end return (?P=count)"
)
_HEAD = re.compile(rb'local (\w+) = "([^"\\]*)"')
_DELETE = re.compile(rb'redis\.call\("del", ([^()]+)\)')
_NAME = re.compile(rb'(\w+)\.\.(\w+)(?:\.\."([^"\\]*)")?')

_CHUNK = 10_000
"""Ids that are looked at together."""


@dataclass(frozen=True, slots=True)
class _DeleteAll:
    """Takes all ids from a list, and deletes what is named after them.

    Attributes:
        names: what stands before and behind the id in each name.
    """

    names: tuple[tuple[bytes, bytes], ...]

    def __call__(self, call: Call, keys: list[bytes]) -> int | None:
        if not keys or any(keys[0].startswith(head) for head, _ in self.names):
            return None  # the list itself might be deleted on the way
        try:
            found = List.find(call.db, keys[0])
        except WrongType:
            return None
        if found is None:
            return 0
        size = len(found)
        for start in range(0, size, _CHUNK):
            self._delete(call, found.range(start, start + _CHUNK - 1))
        call.db.delete(found.meta)
        return size

    def _delete(self, call: Call, ids: list[bytes]) -> None:
        db = call.db
        for name in sorted(head + each + tail for each in ids for head, tail in self.names):
            meta = db.find(name)
            if meta is not None:
                db.delete(meta)


@lru_cache(maxsize=256)
def shortcut(script: bytes) -> Shortcut | None:
    """How to do without Lua what a script does; None: there is no such way."""
    text = b" ".join(re.sub(rb"--[^\n]*", b"", script).split())
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    heads = dict(_HEAD.findall(form["heads"]))
    names = []
    for arguments in _DELETE.findall(form["deletes"]):
        for argument in arguments.split(b", "):
            name = _NAME.fullmatch(argument)
            if name is None or name[1] not in heads or name[2] != form["id"]:
                return None
            names.append((heads[name[1]], name[3] or b""))
    if any(b" " in part for name in names for part in name):
        return None  # there may have been more than one space
    return _DeleteAll(tuple(names))
