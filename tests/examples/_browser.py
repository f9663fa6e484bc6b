"""A client of the examples' servers, and a server for their jobs to call."""

from __future__ import annotations

import contextlib
import http.cookiejar
import http.server
import json
import queue
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.contract.helpers import WATCHDOG
from tests.examples._example import Terminal, wait_until


@dataclass
class Answer:
    status: int
    url: str
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Browser:
    """Follows redirects, and keeps cookies."""

    def __init__(self, site: str) -> None:
        self._site = site
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        no_proxy = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(jar, no_proxy)

    def get(self, path: str) -> Answer:
        return self._open(urllib.request.Request(urllib.parse.urljoin(self._site, path)))

    def post_form(self, path: str, **fields: str) -> Answer:
        return self._post(path, urllib.parse.urlencode(fields).encode(), "x-www-form-urlencoded")

    def post_json(self, path: str, body: object) -> Answer:
        return self._post(path, json.dumps(body).encode(), "json")

    def _post(self, path: str, body: bytes, kind: str) -> Answer:
        headers = {"Content-Type": f"application/{kind}"}
        url = urllib.parse.urljoin(self._site, path)
        return self._open(urllib.request.Request(url, body, headers))

    def _open(self, request: urllib.request.Request) -> Answer:
        try:
            with self._opener.open(request, timeout=WATCHDOG) as answer:
                return Answer(answer.status, answer.url, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.url, error.read().decode())

    def wait_for_server(self, server: Terminal) -> None:
        """Wait until it answers."""

        def answers() -> bool:
            assert not server.has_ended(), "the server has ended"
            with contextlib.suppress(OSError):
                self.get("/")
                return True
            return False

        wait_until(answers, "the server answers")

    def wait_for_text(self, path: str, pattern: str) -> Answer:
        """Reload a page until it shows what is waited for."""
        answers = []

        def shows() -> bool:
            answers[:] = [self.get(path)]
            return re.search(pattern, answers[0].text) is not None

        try:
            wait_until(shows, f"{path} shows {pattern!r}")
        except AssertionError:
            print(answers[0].text)
            raise
        return answers[0]


@dataclass
class Site:
    """A server whose every answer is decided by the test.

    Attributes:
        url: where it is.
        pages: what it answers at once: status and text by path.
        held: the paths whose answers have to be released, with what they will be.
        asked: the paths that were asked for, with headers and body, as they come.
    """

    url: str = ""
    pages: dict[str, tuple[int, str]] = field(default_factory=dict)
    held: dict[str, threading.Event] = field(default_factory=dict)
    asked: queue.Queue[tuple[str, dict[str, str], str]] = field(default_factory=queue.Queue)

    def hold(self, path: str) -> None:
        """Let whoever asks for the path wait."""
        self.held[path] = threading.Event()

    def release(self, path: str) -> None:
        """Answer all who wait, and those who come."""
        self.held.pop(path).set()

    def next_asked(self) -> tuple[str, dict[str, str], str]:
        """The next that was asked for; waits for it."""
        return self.asked.get(timeout=WATCHDOG)


@contextlib.contextmanager
def serving() -> Iterator[Site]:
    """A site for the length of a block."""
    site = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            site.asked.put((self.path, dict(self.headers), body))
            if event := site.held.get(self.path):
                event.wait(WATCHDOG)
            status, text = site.pages.get(self.path, (404, ""))
            with contextlib.suppress(ConnectionError):  # who asked may be dead
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            site.url = f"http://127.0.0.1:{server.server_port}"
            yield site
        finally:
            for path in list(site.held):
                site.release(path)
            server.shutdown()
            thread.join()
