"""What RQ's own cron scheduler is to do."""

import operator

from rq.cron import register

register(operator.mul, "default", args=(2, 3), interval=1)
