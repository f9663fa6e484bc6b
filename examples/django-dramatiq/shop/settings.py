"""Settings of the shop. What a deployment changes comes from the environment."""

import os
from pathlib import Path

import django

BASE_DIR = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SHOP_DATA", BASE_DIR / "data"))

DEBUG = "DJANGO_SECRET_KEY" not in os.environ
SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "for development only")
ALLOWED_HOSTS = os.environ.get("DJANGO_ALLOWED_HOSTS", "127.0.0.1,localhost").split(",")

INSTALLED_APPS = ["django_dramatiq", "orders"]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]
ROOT_URLCONF = "shop.urls"
WSGI_APPLICATION = "shop.wsgi.application"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
TIME_ZONE = "UTC"
USE_TZ = True

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "db.sqlite3",
        # The web server and the workers write at the same time: wait for each other.
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Mails become files, so that the example needs no mail server.
FILES = "django.core.mail.backends.filebased.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": FILES, "OPTIONS": {"file_path": DATA / "mails"}}}
else:  # the newest Django for Python 3.10 and 3.11
    EMAIL_BACKEND = FILES
    EMAIL_FILE_PATH = DATA / "mails"

DRAMATIQ_BROKER = {
    "BROKER": "equeue_dramatiq.LMDBBroker",
    "OPTIONS": {"path": DATA / "queue"},
    "MIDDLEWARE": [
        "dramatiq.middleware.AgeLimit",
        "dramatiq.middleware.TimeLimit",
        "dramatiq.middleware.Callbacks",
        "dramatiq.middleware.Pipelines",
        "dramatiq.middleware.Retries",
        "django_dramatiq.middleware.DbConnectionsMiddleware",
    ],
}
