"""The module that the ``dramatiq`` command imports; the environment says what to serve."""

from __future__ import annotations

import json
import os
from pathlib import Path

import dramatiq

from benchmarks._board import Pen
from benchmarks.brokers._actors import declare
from benchmarks.brokers._command import VARIABLE

_settings = json.loads(os.environ[VARIABLE])
_actors = declare(
    _settings["name"],
    _settings["address"],
    results=_settings["results"],
    pen=Pen(Path(_settings["board"])),
)
dramatiq.set_broker(_actors.broker)
