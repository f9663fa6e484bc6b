"""Writes docs/assets/top.svg, the screen of `equeue top`: ``python -m tests.docs._screenshot``."""

from __future__ import annotations

import asyncio
import os
import random
import re
import tempfile
import threading

from equeue_core import Queue, Store
from equeue_core.cli._screen import TopApp
from tests.docs import _pages

PAGE = _pages.DOCS / "assets" / "top.svg"

SIZE = (80, 24)

LOOKS = 70

ERRORS = (
    ConnectionRefusedError("the mail server is down"),
    TimeoutError("smtp.example.org did not answer within 30 s"),
    ValueError("no such mailbox: nobody@example.org"),
)


def work(store: Store, ended: threading.Event) -> None:
    """Keep three queues busy, by chance but always in the same way."""
    chance = random.Random(5)
    mail, thumbnails, reports = (store.queue(name) for name in ("mail", "thumbnails", "reports"))
    mail.put_many([{"to": f"{number}@example.org"} for number in range(1800)])
    thumbnails.put_many([{"image": f"{number}.png"} for number in range(300)])
    reports.put({"month": "2026-02"}, delay=3600)
    for month in range(10, 13):
        reports.put({"month": f"2025-{month}"})
    slow = [reports.get(timeout=0), thumbnails.get(timeout=0)]
    while not ended.wait(0.004):
        busy(chance, mail, {"to": f"{chance.randrange(10**5)}@example.org"}, 0.97)
        busy(chance, thumbnails, {"image": f"{chance.randrange(10**5)}.png"}, 1.0)
    for record in slow:
        record.release()


def busy(chance: random.Random, queue: Queue[object], payload: object, good: float) -> None:
    """Put some jobs, and work some off."""
    queue.put_many([payload] * chance.randint(1, 2))
    for record in queue.get_many(chance.randint(1, 2), timeout=0) if queue.qsize() > 3 else []:
        if chance.random() < good:
            record.ack()
        else:
            record.fail(chance.choice(ERRORS))


async def photograph(path: str) -> str:
    """What the screen looks like after some looks, as SVG."""
    app = TopApp(path, 0.1)
    async with app.run_test(size=SIZE) as pilot:
        while len(app._top.history.pending) < LOOKS:
            await pilot.pause(0.1)
        app.title = "equeue top /var/lib/app/data"
        await pilot.pause()
        return app.export_screenshot(title="equeue top /var/lib/app/data")


def plain(svg: str) -> str:
    """Without what a page would fetch from elsewhere, and shorter."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("<style>", "<style>\nrect { shape-rendering: crispEdges }")
    svg = re.sub(r"terminal-\d+", "t", svg).replace("Fira Code", "DejaVu Sans Mono")
    svg = re.sub(r' (shape-rendering="crispEdges"|clip-path="url\(#t-line-\d+\)")', "", svg)
    svg = re.sub(r'<clipPath id="t-line-\d+">.*?</clipPath>', "", svg, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", svg)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "data")
        ended = threading.Event()
        with Store(path, sync="normal") as store:
            worker = threading.Thread(target=work, args=(store, ended))
            worker.start()
            try:
                PAGE.write_text(plain(asyncio.run(photograph(path))), encoding="utf-8")
            finally:
                ended.set()
                worker.join()
