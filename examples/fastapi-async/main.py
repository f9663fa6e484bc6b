"""A service that delivers webhooks: it accepts them at once, and calls their addresses in the background."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
from equeue_core import AsyncQueue, EQueueError, JobNotFound, exponential_backoff
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, HttpUrl

STORE = os.environ.get("WEBHOOKS_DATA", Path(__file__).resolve().with_name("data"))
CONSUMERS = 4  # deliveries at a time

logger = logging.getLogger("uvicorn.error")


class Webhook(BaseModel):
    url: HttpUrl
    body: dict[str, Any]


async def deliver(queue: AsyncQueue[dict[str, Any]], client: httpx.AsyncClient) -> None:
    while True:
        # Cancelled when the server stops: then a delivery under way is released, to be made again.
        async with queue.processing() as record:
            webhook = record.payload
            # A job can be delivered twice. By its number, the receiver can tell.
            headers = {"Webhook-Id": str(record.job_id)}
            try:
                answer = await client.post(webhook["url"], json=webhook["body"], headers=headers)
            except Exception as error:
                await record.nack(error)
            else:
                if answer.is_success:
                    await record.ack(result={"status": answer.status_code})
                else:
                    await record.nack(f"answered {answer.status_code} {answer.reason_phrase}")


def stop_the_server(consumer: asyncio.Task[None]) -> None:
    """A service that accepts webhooks and delivers none would be worse than one that is down."""
    if not consumer.cancelled():
        logger.critical("a consumer has ended", exc_info=consumer.exception())
        signal.raise_signal(signal.SIGTERM)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    queue = AsyncQueue[dict[str, Any]](
        STORE,
        "webhooks",
        max_retries=10,
        backoff=exponential_backoff(first=1, maximum=600),
        vacuum_interval=3600,  # for so long, what was delivered can be looked up
    )
    async with queue, httpx.AsyncClient(timeout=10) as client:
        consumers = [asyncio.create_task(deliver(queue, client)) for _ in range(CONSUMERS)]
        for consumer in consumers:
            consumer.add_done_callback(stop_the_server)
        yield {"queue": queue}
        for consumer in consumers:
            consumer.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)


def the_queue(request: Request) -> AsyncQueue[dict[str, Any]]:
    queue: AsyncQueue[dict[str, Any]] = request.state.queue
    return queue


WebhookQueue = Annotated[AsyncQueue[dict[str, Any]], Depends(the_queue)]
app = FastAPI(title="Webhooks", lifespan=lifespan)


@app.exception_handler(EQueueError)
async def not_now(request: Request, error: EQueueError) -> JSONResponse:
    logger.error("%s %s: %s", request.method, request.url.path, error)  # a full disk, for example
    return JSONResponse({"detail": "Nothing can be stored or looked up at the moment."}, 503)


@app.post("/jobs", status_code=202)
async def accept(webhook: Webhook, queue: WebhookQueue) -> dict[str, int]:
    return {"id": await queue.put(webhook.model_dump(mode="json"))}


@app.get("/jobs/{job_id}")
async def look(job_id: int, queue: WebhookQueue) -> dict[str, Any]:
    try:
        job = await queue.job(job_id)
    except JobNotFound:
        raise HTTPException(404, "There is no such job, or no more.") from None
    errors = [error.message for error in job.errors]
    return {"state": job.state, "deliveries": job.attempts, "errors": errors, "result": job.result}
