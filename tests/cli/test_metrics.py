"""``equeue metrics``."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from equeue_core import Queue, Store
from equeue_core.cli import _metrics
from equeue_core.cli._errors import Code
from tests.cli.conftest import Run

pytest.importorskip("prometheus_client")


def test_once_prints_each_metric(store: Path, equeue: Run) -> None:
    printed = equeue("metrics", store, "--once").stdout
    assert 'equeue_jobs{kind="core",queue="mail",state="failed"} 1.0' in printed
    assert 'equeue_put_total{kind="core",queue="mail"} 6.0' in printed
    oldest = re.search(
        r"^equeue_oldest_pending_timestamp_seconds\{.*\} (.+)$", printed, re.MULTILINE
    )
    assert oldest
    assert time.time() - 3600 < float(oldest[1]) <= time.time()
    named = set(re.findall(r"^(\w+)", printed, flags=re.MULTILINE))
    assert named == set(_metrics.METRICS)


def test_names_are_escaped(store_path: Path, equeue: Run) -> None:
    with Store(store_path) as store:
        store.queue('a"b\nc\rd\\').put(1)
    printed = equeue("metrics", store_path, "--once").stdout
    assert 'queue="a\\"b\\nc\\\\rd\\\\"' in printed
    assert "\r" not in printed


@pytest.mark.parametrize("arguments", [[], ["--once", "--port", "0"]])
def test_one_of_two_ways(arguments: list[str], store: Path, equeue: Run) -> None:
    equeue("metrics", store, *arguments, code=Code.USAGE)


def test_without_prometheus_client(
    store: Path, equeue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    output = equeue("metrics", store, "--once", code=Code.MISSING).stderr
    assert "pip install prometheus-client" in output


def test_a_server_until_ctrl_c(store: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "equeue_core", "metrics", str(store), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1]
            assert "equeue_up 1.0" in read(url)
            with Queue(store, "mail") as queue:
                queue.put("meanwhile")
            assert 'equeue_put_total{kind="core",queue="mail"} 7.0' in read(url)
            shutil.rmtree(store)
            assert "equeue_up 0.0" in read(url)
            assert "no such directory" in process.stderr.readline()
            with Queue(store, "mail") as queue:
                queue.put("in another store")
            assert 'equeue_put_total{kind="core",queue="mail"} 1.0' in read(url)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors.strip()) == (Code.INTERRUPTED, "")


def test_a_port_that_is_taken(store: Path, equeue: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "in use" in equeue("metrics", store, "--port", port, code=Code.OTHER).stderr


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())
