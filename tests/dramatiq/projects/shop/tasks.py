import dramatiq
from common import write
from django_dramatiq.apps import DjangoDramatiqConfig
from dramatiq.rate_limits import ConcurrentRateLimiter

mutex = ConcurrentRateLimiter(DjangoDramatiqConfig.get_rate_limiter_backend(), "shop", limit=1)


@dramatiq.actor(store_results=True)
def count_orders(number: int) -> int:
    with mutex.acquire():
        write("count_orders", number)
        return number + 1
