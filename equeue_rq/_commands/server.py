"""The server, which there is none of: what clients ask about it, and what concerns whole databases."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable

import equeue_core
from equeue_core.storage import scan
from equeue_rq import _clients as clients
from equeue_rq._commands._table import Call, command, integer
from equeue_rq._commands.connection import VERSION
from equeue_rq._glob import matcher
from equeue_rq._keyspace import DATABASES, Keyspace, delete_elements
from equeue_rq._messages import SYNTAX, CommandError
from equeue_rq._replies import OK, Reply, Status

_wall = time.time  # a reference of our own: applications patch time.time
_started = _wall()

_SAMPLES = 5
"""Elements that MEMORY USAGE looks at, unless it is told how many."""
_ENTRY = 40
"""Bytes that an entry takes in the store beside key and value, about."""


@command("TIME", 1, "readonly")
def time_(call: Call) -> Reply:
    """The time of day: seconds, and microseconds of the second."""
    microseconds = int(_wall() * 1_000_000)
    return [b"%d" % (microseconds // 1_000_000), b"%d" % (microseconds % 1_000_000)]


@command("LASTSAVE", 1, "readonly")
def lastsave(call: Call) -> Reply:
    """When the data was last saved: always just now."""
    return int(_wall())


@command("SAVE", 1, "connection", "noscript")
def save(call: Call) -> Reply:
    """Save the data, which is done already."""
    return OK


@command("BGSAVE", -1, "connection", "noscript")
def bgsave(call: Call) -> Reply:
    """Save the data, which is done already."""
    return Status(b"Background saving started")


@command("WAIT", 3, "connection")
def wait(call: Call) -> Reply:
    """To how many replicas all is copied: there are none."""
    return 0


@command("ROLE", 1, "connection", "noscript")
def role(call: Call) -> Reply:
    """A master without replicas."""
    return [b"master", 0, []]


@command("MODULE LIST", 2, "connection", "noscript")
def module_list(call: Call) -> Reply:
    """The loaded modules: none."""
    return []


@command("ACL WHOAMI", 2, "connection", "noscript")
def acl_whoami(call: Call) -> Reply:
    """The one user there is."""
    return b"default"


@command("SLOWLOG GET", -2, "connection", "noscript")
def slowlog_get(call: Call) -> Reply:
    """Commands that took long: nobody notes them."""
    return []


@command("SLOWLOG LEN", 2, "connection", "noscript")
def slowlog_len(call: Call) -> Reply:
    """How many commands took long: nobody notes them."""
    return 0


# Databases


@command("DBSIZE", 1, "readonly")
def dbsize(call: Call) -> Reply:
    """How many keys the database has."""
    return call.db.size()


@command("FLUSHDB", -1, "write")
def flushdb(call: Call) -> Reply:
    """Delete all keys of the database."""
    _check_mode(call.args)
    _flush(call.db)
    return OK


@command("FLUSHALL", -1, "write")
def flushall(call: Call) -> Reply:
    """Delete all keys of all databases."""
    _check_mode(call.args)
    for number in range(DATABASES):
        _flush(call.db.other(number))
    return OK


def _check_mode(args: list[bytes]) -> None:
    if len(args) > 1 or (args and args[0].upper() not in (b"SYNC", b"ASYNC")):
        raise CommandError(SYNTAX)


def _flush(db: Keyspace) -> None:
    for meta in db.all_there_are():
        db.delete(meta)
        delete_elements(db.txn, meta)


@command("MEMORY USAGE", -3, "readonly", keys=(2, 2, 1))
def memory_usage(call: Call) -> Reply:
    """About how many bytes a key takes in the store."""
    samples = _SAMPLES
    if len(call.args) == 3 and call.args[1].upper() == b"SAMPLES":
        samples = integer(call.args[2])
    elif len(call.args) > 1:
        raise CommandError(SYNTAX)
    if samples < 0:
        raise CommandError(SYNTAX)
    meta = call.db.find(call.args[0])
    if meta is None:
        return None
    record = len(meta.name) + len(meta.body) + 2 * _ENTRY
    if not meta.key_id:
        return record
    seen = size = 0
    for key, value in scan(call.db.txn, meta.elements):
        seen += 1
        size += len(key) + len(value) + _ENTRY
        if seen == samples:
            break
    return record + size * max(seen, meta.count) // max(1, seen)


# INFO


@command("INFO", -1, "readonly")
def info(call: Call) -> Reply:
    """What a client may want to know: a line for each fact, in sections."""
    wanted = {each.lower().decode("latin-1") for each in call.args} or {"default"}
    everything = bool(wanted & {"default", "all", "everything"})
    found = []
    for title, facts in _SECTIONS.items():
        if everything or title.lower() in wanted:
            lines = [f"# {title}", *(f"{name}:{value}" for name, value in facts(call).items())]
            found.append("\r\n".join(lines) + "\r\n")
    return "\r\n".join(found).encode()


def _server(call: Call) -> dict[str, object]:
    uptime = int(_wall() - _started)
    return {
        "redis_version": VERSION.decode(),
        "redis_mode": "standalone",
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "arch_bits": 64 if sys.maxsize > 1 << 32 else 32,
        "process_id": os.getpid(),
        "tcp_port": 0,
        "server_time_usec": int(_wall() * 1_000_000),
        "uptime_in_seconds": uptime,
        "uptime_in_days": uptime // 86400,
        "hz": 10,
        "executable": sys.executable,
        "config_file": "",
        "equeue_version": equeue_core.__version__,
    }


def _clients(call: Call) -> dict[str, object]:
    present = clients.present(call.session.space.roster)
    return {
        "connected_clients": len(present),
        "blocked_clients": sum(each.blocked for each in present),
        "pubsub_clients": sum(any(each.subscribed) for each in present),
    }


def _memory(call: Call) -> dict[str, object]:
    size = _file_size(call)
    return {
        "used_memory": size,
        "used_memory_human": _human(size),
        "used_memory_peak": size,
        "used_memory_peak_human": _human(size),
        "maxmemory": 0,
        "maxmemory_human": "0B",
        "maxmemory_policy": "noeviction",
        "mem_fragmentation_ratio": "1.00",
        "mem_allocator": "lmdb",
    }


def _persistence(call: Call) -> dict[str, object]:
    return {
        "loading": 0,
        "rdb_changes_since_last_save": 0,
        "rdb_last_save_time": int(_wall()),
        "rdb_last_bgsave_status": "ok",
        "aof_enabled": 1,
    }


def _stats(call: Call) -> dict[str, object]:
    return {
        "total_connections_received": 0,
        "total_commands_processed": 0,
        "instantaneous_ops_per_sec": 0,
        "expired_keys": 0,
        "evicted_keys": 0,
        "keyspace_hits": 0,
        "keyspace_misses": 0,
    }


def _replication(call: Call) -> dict[str, object]:
    return {"role": "master", "connected_slaves": 0}


def _cpu(call: Call) -> dict[str, object]:
    used = os.times()
    return {"used_cpu_sys": f"{used.system:.6f}", "used_cpu_user": f"{used.user:.6f}"}


def _cluster(call: Call) -> dict[str, object]:
    return {"cluster_enabled": 0}


def _nothing(call: Call) -> dict[str, object]:
    return {}


def _keyspace(call: Call) -> dict[str, object]:
    found: dict[str, object] = {}
    for number in range(DATABASES):
        db = call.db.other(number)
        keys = db.size()
        if keys:
            found[f"db{number}"] = f"keys={keys},expires={db.expiring()},avg_ttl=0"
    return found


_SECTIONS: dict[str, Callable[[Call], dict[str, object]]] = {
    "Server": _server,
    "Clients": _clients,
    "Memory": _memory,
    "Persistence": _persistence,
    "Stats": _stats,
    "Replication": _replication,
    "CPU": _cpu,
    "Modules": _nothing,
    "Errorstats": _nothing,
    "Cluster": _cluster,
    "Keyspace": _keyspace,
}


def _file_size(call: Call) -> int:
    pages = call.db.txn.stat()
    used = pages["branch_pages"] + pages["leaf_pages"] + pages["overflow_pages"]
    return used * pages["psize"]


def _human(size: float) -> str:
    units = "BKMGT"
    power = 0
    while size >= 1024 and power < len(units) - 1:
        size, power = size / 1024, power + 1
    return f"{size:.2f}{units[power]}"


# CONFIG


def _config(call: Call) -> dict[str, bytes]:
    return {
        "appendfsync": {"full": b"always", "normal": b"everysec", "off": b"no"}[
            call.session.store.sync
        ],
        "appendonly": b"yes",
        "databases": b"%d" % DATABASES,
        "dir": os.path.abspath(call.session.store.path).encode(),
        "maxclients": b"10000",
        "maxmemory": b"0",
        "maxmemory-policy": b"noeviction",
        "notify-keyspace-events": b"",
        "port": b"0",
        "proto-max-bulk-len": b"536870912",
        "requirepass": b"",
        "save": b"",
        "timeout": b"0",
    }


@command("CONFIG GET", -3, "connection", "noscript")
def config_get(call: Call) -> Reply:
    """The settings whose names match patterns."""
    matches = [matcher(each.lower()) for each in call.args]
    return {
        name.encode(): value
        for name, value in _config(call).items()
        if any(match(name.encode()) for match in matches)
    }


@command("CONFIG SET", -4, "connection", "noscript")
def config_set(call: Call) -> Reply:
    """Change a setting: only to what it is."""
    if len(call.args) % 2:
        raise CommandError("ERR wrong number of arguments for 'config|set' command")
    config = _config(call)
    for name, value in zip(call.args[::2], call.args[1::2], strict=True):
        text = name.decode("latin-1").lower()
        if text not in config:
            raise CommandError(
                f"ERR Unknown option or number of arguments for CONFIG SET - '{name.decode('latin-1')}'"
            )
        if value != config[text]:
            raise CommandError(
                f"ERR CONFIG SET failed (possibly related to argument '{name.decode('latin-1')}') - "
                "can't set immutable config"
            )
    return OK


@command("CONFIG RESETSTAT", 2, "connection", "noscript")
def config_resetstat(call: Call) -> Reply:
    """Forget the statistics, of which there are none."""
    return OK
