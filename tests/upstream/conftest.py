"""How many of the other projects' tests passed, at the end of a run."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    projects: dict[str, list[dict[str, Any]]] = {}
    for kind in ("passed", "failed"):
        for report in terminalreporter.getreports(kind):
            properties = dict(report.user_properties)
            if report.when == "call" and "project" in properties:
                projects.setdefault(properties["project"], []).append(properties)
    for project, files in projects.items():
        terminalreporter.section(f"{project}'s own tests")
        passed = sum(properties["passed"] for properties in files)
        left_out = sum(properties["left_out"] for properties in files)
        terminalreporter.line(f"{passed} passed, {left_out} left out, in {len(files)} files")
        for properties in files:
            for test in properties["second_try"]:
                terminalreporter.line(f"passed at the second try only: {test}; the first:")
                terminalreporter.line(properties["first_try"])
