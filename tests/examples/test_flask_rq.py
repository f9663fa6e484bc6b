"""The site and its worker: a report with progress, and one that outlives its worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples._browser import Browser, Site, serving
from tests.examples._example import Example, Terminal

pytestmark = pytest.mark.once

PAGE = '<a href="/good">good</a> <a href="/good#below">the same</a> <a href="bad">bad</a> <a href="slow">'


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example("flask-rq", tmp_path)


@pytest.fixture
def site() -> Iterator[Site]:
    """A page with a link that is good, one that is broken, and one that answers when it is released."""
    with serving() as site:
        site.pages = {"/": (200, PAGE), "/good": (200, "good"), "/slow": (200, "slow")}
        site.hold("/slow")
        yield site


@pytest.fixture
def web(example: Example, browser: Browser) -> Iterator[Terminal]:
    with example.running("web") as terminal:
        browser.wait_for_server(terminal)
        yield terminal


def wait_until_slow(site: Site) -> None:
    while site.next_asked()[0] != "/slow":
        pass


@pytest.mark.parametrize("server", ["web", "gunicorn"])
def test_the_readme_from_its_first_command_to_its_last(
    example: Example, browser: Browser, server: str
) -> None:
    with example.running(server) as web, example.running("worker") as worker:
        browser.wait_for_server(web)
        refused = browser.post_form("/reports", address="example.org")
        assert refused.status == 400
        assert "The address of a page begins with http:// or https://." in refused.text
        assert "There is no such report" in browser.get("/reports/none").text
        form = browser.get("/").text
        assert f'value="{example.url}/"' in form
        page = browser.post_form("/reports", address=f"{example.url}/").url
        report = browser.wait_for_text(page, "finished").text
        assert "finished: 2 addresses, 1 broken" in report
        assert f"{example.url}/reports/none <strong>404 NOT FOUND</strong>" in report
        assert worker.ctrl_c() == 0
        assert web.ctrl_c() == 0
    assert (example.directory / "data" / "data.mdb").exists()


@pytest.mark.usefixtures("web")
def test_progress_and_a_stop_that_finishes_the_job(
    example: Example, browser: Browser, site: Site
) -> None:
    page = browser.post_form("/reports", address=f"{site.url}/").url
    assert "queued" in browser.get(page).text
    with example.running("worker") as worker:
        wait_until_slow(site)
        browser.wait_for_text(page, "started link 3 of 3")
        site.release("/slow")
        assert worker.ctrl_c() == 0
    report = browser.get(page).text
    assert "finished: 4 addresses, 1 broken" in report
    assert f"{site.url}/bad <strong>404 Not Found</strong>" in report


@pytest.mark.usefixtures("web")
def test_a_killed_workers_report_is_made_anew(
    example: Example, browser: Browser, site: Site
) -> None:
    page = browser.post_form("/reports", address=f"{site.url}/").url
    with example.running("worker") as worker:
        wait_until_slow(site)
        worker.kill()
    site.release("/slow")
    with example.running("worker") as worker:
        report = browser.wait_for_text(page, "finished").text
        assert worker.terminate() == 0
    assert "finished: 4 addresses, 1 broken" in report


@pytest.mark.usefixtures("web")
def test_killed_twice_it_is_failed_and_the_page_says_so(
    example: Example, browser: Browser, site: Site
) -> None:
    page = browser.post_form("/reports", address=f"{site.url}/").url
    for _ in range(2):
        with example.running("worker") as worker:
            wait_until_slow(site)
            worker.kill()
    with example.running("worker"):
        report = browser.wait_for_text(page, "failed").text
    assert "Abandoned" in report
