"""What Dramatiq expects of a broker, a results backend and a rate limiter backend.

The classes are bound in tests/dramatiq, to Dramatiq's own backends and to ours: what passes there
and here alike is Dramatiq's contract, not our idea of it. A binding subclasses a contract, sets
its `capabilities` and provides the fixture `backend`; see `BrokerBackend`, `ResultsBackend` and
`LimitsBackend`. Tests ask for capabilities, never for a backend's name: see capabilities.py.
"""

from __future__ import annotations

from tests.contract.dramatiq.composing import ComposingContract
from tests.contract.dramatiq.consuming import ConsumingContract
from tests.contract.dramatiq.declaring import DeclaringContract
from tests.contract.dramatiq.delaying import DelayingContract
from tests.contract.dramatiq.enqueueing import EnqueueingContract
from tests.contract.dramatiq.fixtures import BrokerFixtures
from tests.contract.dramatiq.helpers import BrokerBackend
from tests.contract.dramatiq.managing import FlushingContract, JoiningContract
from tests.contract.dramatiq.priorities import PrioritiesContract
from tests.contract.dramatiq.rate_limits import LimitersContract, LimitsBackend, LimitsContract
from tests.contract.dramatiq.results import ResultsBackend, ResultsContract
from tests.contract.dramatiq.stopping import StoppingContract
from tests.contract.dramatiq.working import (
    RetryingContract,
    SkippingContract,
    WorkingContract,
)


class BrokerContract(
    BrokerFixtures,
    DeclaringContract,
    EnqueueingContract,
    ConsumingContract,
    DelayingContract,
    PrioritiesContract,
    FlushingContract,
    JoiningContract,
    WorkingContract,
    RetryingContract,
    SkippingContract,
    StoppingContract,
    ComposingContract,
):
    """All of a broker's."""


class RateLimitsContract(LimitsContract, LimitersContract):
    """All of a rate limiter backend's."""


__all__ = [
    "BrokerBackend",
    "BrokerContract",
    "LimitsBackend",
    "RateLimitsContract",
    "ResultsBackend",
    "ResultsContract",
]
