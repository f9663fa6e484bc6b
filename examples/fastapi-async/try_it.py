"""Sends the service a webhook for a receiver of its own, which refuses it once, and shows the outcome."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen


class Receiver(BaseHTTPRequestHandler):
    answers = iter([503, 200])

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        status = next(self.answers)
        print(f"received {body} with Webhook-Id {self.headers['Webhook-Id']}; answering {status}")
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


def ask(url: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"Content-Type": "application/json"})
    with urlopen(request, timeout=10) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def main(service: str) -> None:
    with HTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        webhook = {"url": f"http://127.0.0.1:{receiver.server_port}/", "body": {"order": 7}}
        job_id = ask(f"{service}/jobs", webhook)["id"]
        job = ask(f"{service}/jobs/{job_id}")
        while job["state"] not in ("done", "failed"):
            time.sleep(0.2)
            job = ask(f"{service}/jobs/{job_id}")
        receiver.shutdown()
    print(f"job {job_id}:", json.dumps(job, indent=2))


if __name__ == "__main__":
    main(sys.argv[1])
