"""Of a Django project with django-dramatiq and dramatiq-crontab."""

from importlib.util import find_spec

from common import DIRECTORY, STORE

SECRET_KEY = "tests only"
USE_TZ = True
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DIRECTORY / "database.sqlite"}
}
INSTALLED_APPS = ["django_dramatiq", "shop"]
if find_spec("dramatiq_crontab"):  # it needs Python 3.11
    INSTALLED_APPS += ["dramatiq_crontab", "timetable"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DRAMATIQ_BROKER = {
    "BROKER": "equeue_dramatiq.LMDBBroker",
    "OPTIONS": {"path": STORE},
    "MIDDLEWARE": [
        "dramatiq.middleware.AgeLimit",
        "dramatiq.middleware.TimeLimit",
        "dramatiq.middleware.Callbacks",
        "dramatiq.middleware.Pipelines",
        "dramatiq.middleware.Retries",
        "django_dramatiq.middleware.AdminMiddleware",
        "django_dramatiq.middleware.DbConnectionsMiddleware",
    ],
}
DRAMATIQ_RESULT_BACKEND = {
    "BACKEND": "equeue_dramatiq.LMDBResultBackend",
    "BACKEND_OPTIONS": {"path": STORE},
    "MIDDLEWARE_OPTIONS": {"result_ttl": 60_000},
}
DRAMATIQ_RATE_LIMITER_BACKEND = {
    "BACKEND": "equeue_dramatiq.LMDBRateLimiterBackend",
    "BACKEND_OPTIONS": {"path": STORE},
}
