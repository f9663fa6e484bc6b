"""The service: webhooks are delivered, again if they are refused, and after a crash."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from equeue_core import Queue
from tests.examples._browser import Browser, Site, serving
from tests.examples._example import Example

pytestmark = pytest.mark.once

BODY = {"order": 7}


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example("fastapi-async", tmp_path)


@pytest.fixture
def receiver() -> Iterator[Site]:
    """The other side: it takes what comes to /, and holds what comes to /slow."""
    with serving() as site:
        site.pages = {"/": (204, ""), "/slow": (200, "")}
        site.hold("/slow")
        yield site


def test_the_readme_from_its_first_command_to_its_last(example: Example, browser: Browser) -> None:
    with example.running("service") as service:
        browser.wait_for_server(service)
        example.check("client")
        assert browser.get("/docs").status == 200
        assert browser.get("/jobs/2").status == 404
        assert browser.post_json("/jobs", {"url": "nowhere", "body": BODY}).status == 422
        assert service.ctrl_c() == 0
    assert "ERROR" not in service.printed()


def test_a_delivery_under_way_when_it_stops_is_made_again(
    example: Example, browser: Browser, receiver: Site
) -> None:
    job = {"url": f"{receiver.url}/slow", "body": BODY}
    for delivery, stop, status in [(1, "ctrl_c", 0), (2, "terminate", -signal.SIGTERM)]:
        with example.running("service") as service:
            browser.wait_for_server(service)
            if delivery == 1:
                accepted = browser.post_json("/jobs", job)
                assert (accepted.status, accepted.json) == (202, {"id": 1})
            path, headers, body = receiver.next_asked()
            assert (path, headers["Webhook-Id"], body) == ("/slow", "1", '{"order":7}')
            # Uvicorn stops gracefully in any case, and then ends by the signal unless it is Ctrl-C's.
            assert getattr(service, stop)() == status
            assert "ERROR" not in service.printed()
        released = Queue(example.directory / "data", "webhooks").job(1)
        assert (released.state, released.attempts) == ("pending", delivery)
    receiver.release("/slow")
    with example.running("service") as service:
        browser.wait_for_server(service)
        done = browser.wait_for_text("/jobs/1", "done").json
        assert done == {"state": "done", "deliveries": 3, "errors": [], "result": {"status": 200}}


def test_a_delivery_under_way_when_it_is_killed_is_made_again(
    example: Example, browser: Browser, receiver: Site
) -> None:
    with example.running("service") as service:
        browser.wait_for_server(service)
        browser.post_json("/jobs", {"url": f"{receiver.url}/slow", "body": BODY})
        browser.post_json("/jobs", {"url": f"{receiver.url}/", "body": BODY})
        assert browser.wait_for_text("/jobs/2", "done").json["result"] == {"status": 204}
        assert browser.get("/jobs/1").json["state"] == "running"
        service.kill()
    receiver.release("/slow")
    with example.running("service") as service:
        browser.wait_for_server(service)
        done = browser.wait_for_text("/jobs/1", "done").json
        assert (done["deliveries"], done["result"]) == (2, {"status": 200})
        (error,) = done["errors"]
        assert "died" in error


def test_on_a_full_disk_it_refuses_and_without_its_store_it_stops(
    example: Example, browser: Browser, receiver: Site
) -> None:
    # No file may be larger than 4 MB.
    with example.running("service", before="ulimit -f 4000") as service:
        browser.wait_for_server(service)
        webhook = {"url": f"{receiver.url}/", "body": {"large": "x" * 5_000_000}}
        refused = browser.post_json("/jobs", webhook)
        assert refused.status == 503
        assert refused.json["detail"] == "Nothing can be stored or looked up at the moment."
        assert "POST /jobs: " in service.printed()
        browser.post_json("/jobs", {"url": f"{receiver.url}/", "body": BODY})
        browser.wait_for_text("/jobs/1", "done")
        shutil.rmtree(example.directory / "data")
        assert service.wait() == -signal.SIGTERM
    assert "a consumer has ended" in service.printed()
    assert "StoreRemoved" in service.printed()
