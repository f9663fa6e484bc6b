"""How many of Dramatiq's tests passed, at the end of a run."""

from __future__ import annotations

import importlib.metadata

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    files = [
        (report.nodeid, dict(report.user_properties))
        for kind in ("passed", "failed")
        for report in terminalreporter.getreports(kind)
        if "test_dramatiq_suite.py::test_file[" in report.nodeid and report.when == "call"
    ]
    if not files:
        return
    passed = sum(properties["passed"] for _, properties in files)
    left_out = sum(properties["left_out"] for _, properties in files)
    terminalreporter.section(f"Dramatiq {importlib.metadata.version('dramatiq')}'s own tests")
    terminalreporter.line(f"{passed} passed, {left_out} left out, in {len(files)} files")
    for _, properties in files:
        for test in properties["second_try"]:
            terminalreporter.line(f"passed at the second try only: {test}; the first:")
            terminalreporter.line(properties["first_try"])
