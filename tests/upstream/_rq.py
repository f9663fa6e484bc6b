"""RQ's tests: which there are, and what they need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests._servers import redis_server
from tests.upstream import _left_out, _runs

# How many tests each file has; the longest first.
_SHARED = {
    "test_connection.py": 1,
    "test_fixtures.py": 2,
    "test_helpers.py": 1,
    "test_serializers.py": 1,
}
TESTS = {
    "3.0.0": {
        "test_cli.py": 51,
        "test_worker.py": 99,
        "test_dependencies.py": 17,
        "test_worker_pool.py": 11,
        "test_scheduler.py": 37,
        "test_job_dependency.py": 29,
        "test_retry.py": 21,
        "test_group.py": 23,
        "test_job.py": 65,
        "test_rate_limit.py": 58,
        "test_commands.py": 6,
        "test_timeouts.py": 2,
        "test_executions.py": 20,
        "test_registry.py": 53,
        "test_queue.py": 63,
        "test_intermediate_queue.py": 8,
        "test_callbacks.py": 18,
        "test_spawn_worker.py": 15,
        "test_webhooks.py": 31,
        "test_repeat.py": 12,
        "test_results.py": 16,
        "test_decorator.py": 16,
        "test_key_prefix.py": 7,
        "test_cron.py": 31,
        "test_cron_job.py": 26,
        "test_utils.py": 27,
        "test_worker_registration.py": 5,
        "test_scripts.py": 12,
        "test_cron_scheduler_registry.py": 4,
        "test_job_lifecycle.py": 3,
        "test_queue_unique.py": 7,
        "test_cron_job_registry.py": 5,
        **_SHARED,
    },
    "2.0.0": {
        "test_worker.py": 84,
        "test_cli.py": 38,
        "test_job.py": 81,
        "test_scheduler.py": 24,
        "test_worker_pool.py": 7,
        "test_group.py": 14,
        "test_registry.py": 34,
        "test_timeouts.py": 1,
        "test_commands.py": 5,
        "test_dependencies.py": 10,
        "test_executions.py": 10,
        "test_callbacks.py": 13,
        "test_results.py": 13,
        "test_intermediate_queue.py": 6,
        "test_queue.py": 53,
        "test_retry.py": 6,
        "test_utils.py": 18,
        "test_decorator.py": 14,
        "test_worker_registration.py": 4,
        **_SHARED,
    },
}
# They write files of fixed names under /tmp.
_ALONE = {"test_worker.py", "test_spawn_worker.py"}
# With the first of them, RQ's tests run slow ones too; with the second, those with TLS.
_SLOW, _TLS = "RUN_SLOW_TESTS_TOO", "RUN_SSL_TESTS"
_WORKERS = "EQUEUE_UPSTREAM_WORKERS"


def way(
    version: str, *, control: bool = False, slow: bool = False, workers: bool = False
) -> _runs.Way:
    """How to run them.

    Parameters:
        version: of RQ.
        control: on redis-py's own connection and a real server, to test the fixtures.
        slow: with the slow ones.
        workers: with the workers of `equeue_rq` in place of RQ's.
    """
    skipped = set(_left_out.of_version("rq", version))
    never = {test for test in skipped if test.endswith("_force_death")}
    if slow:
        skipped = {test for test in skipped if test.endswith("_with_ssl")}

    @contextlib.contextmanager
    def environment(directory: Path) -> Iterator[dict[str, str]]:
        variables = {_SLOW: "1" if slow else "", _TLS: "", _WORKERS: "1" if workers else ""}
        if control:
            with redis_server(directory) as port:
                yield {"EQUEUE_UPSTREAM_PORT": str(port), **variables}
        else:
            yield {"EQUEUE_UPSTREAM_STORE": str(directory / "data"), **variables}

    return _runs.Way(
        "equeue_upstream",
        environment,
        modules=_runs.SUPPLIED / "rq_tests",
        skipped=skipped - never,
        deselected=never,
        alone=_ALONE,
    )
