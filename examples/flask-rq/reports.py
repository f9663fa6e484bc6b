"""The job: which links of a page are broken. RQ's worker imports this module, and no Flask."""

from __future__ import annotations

from html.parser import HTMLParser
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.request import Request, urlopen

from rq import get_current_job

TIMEOUT = 10  # seconds for each address
HEADERS = {"User-Agent": "link-report"}


class Links(HTMLParser):
    """Collects the targets of a page's links, each once, in the page's order."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.found: dict[str, None] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if (tag, name) == ("a", "href") and value:
                target, _ = urldefrag(urljoin(self.address, value))
                if urlsplit(target).scheme in ("http", "https"):
                    self.found[target] = None


def check_links(address: str) -> dict[str, str]:
    """What is wrong with a page and each of its links, "" if nothing is."""
    job = get_current_job()
    assert job is not None
    page = Links(address)
    findings = {address: problem(address, page)}
    for number, link in enumerate(page.found, start=1):
        job.meta["progress"] = f"link {number} of {len(page.found)}"
        job.save_meta()
        findings[link] = problem(link)
    return findings


def problem(address: str, page: Links | None = None) -> str:
    try:
        with urlopen(Request(address, headers=HEADERS), timeout=TIMEOUT) as answer:
            if page is not None:
                page.feed(answer.read().decode("utf-8", "replace"))
    except HTTPError as error:
        with error:
            return f"{error.code} {error.reason}"
    except (OSError, HTTPException, ValueError) as error:
        return str(error)
    return ""
