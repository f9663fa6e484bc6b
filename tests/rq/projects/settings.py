"""Of a Django project with django-rq, its admin pages, and rq-scheduler."""

from common import DIRECTORY, STORE

SECRET_KEY = "tests only"
USE_TZ = True
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "urls"
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DIRECTORY / "database.sqlite"}
}
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django_rq",
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "static/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "rq": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": f"lmdb://{STORE}",
        "OPTIONS": {"CONNECTION_POOL_CLASS": "equeue_rq.LMDBConnectionPool"},
    },
}
RQ_QUEUES = {"default": {"USE_REDIS_CACHE": "rq"}, "high": {"USE_REDIS_CACHE": "rq"}}
RQ = {"WORKER_CLASS": "equeue_rq.Worker"}
RQ_API_TOKEN = "token"
