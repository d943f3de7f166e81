"""Django's settings. What differs between machines comes from the environment; docs/settings.md lists the names."""

from __future__ import annotations

from datetime import timedelta

from django.utils.csp import CSP

from checkpoint.config import environment

BASE_DIR = environment.BASE_DIR
CHECKPOINT_HOME = environment.HOME

DEBUG = environment.flag("DEBUG")
SECRET_KEY = environment.secret_key()
ALLOWED_HOSTS = environment.words("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = environment.words("CSRF_TRUSTED_ORIGINS")

# Databases. The application's role owns nothing; only migrations and set-up connect as the owner.
NO_DATABASE = "postgresql://checkpoint_app@127.0.0.1:1/no_database_configured"
DATABASE_URL = environment.text("DATABASE_URL", NO_DATABASE)
DATABASE_OWNER_URL = environment.text("DATABASE_OWNER_URL", DATABASE_URL)
DATABASE_DIRECT_URL = environment.text("DATABASE_DIRECT_URL", DATABASE_URL)
CHECKPOINT_AS_OWNER = environment.flag("CHECKPOINT_AS_OWNER")
CHECKPOINT_APP_ROLE = environment.text("CHECKPOINT_APP_ROLE", environment.database(DATABASE_URL)["USER"])
# A web process answers each request on a thread of its own: without a pool, a rush takes every connection there is.
DATABASE_POOL = int(environment.text("CHECKPOINT_DATABASE_POOL", "0"))
DATABASES = {
    "default": environment.database(DATABASE_OWNER_URL if CHECKPOINT_AS_OWNER else DATABASE_URL, pool=DATABASE_POOL)
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

BROKER_URL = environment.text("BROKER_URL")
CHECKPOINT_HANDS = int(environment.text("CHECKPOINT_HANDS", "16"))  # calls in flight per worker process
CHECKPOINT_LEASE_SECONDS = float(environment.text("CHECKPOINT_LEASE_SECONDS", "15"))  # renewed three times as often

# For so long a question waits for what the flight recorder of a dead worker says, if that was on another host.
CHECKPOINT_FLIGHT_WORD_SECONDS = float(environment.text("CHECKPOINT_FLIGHT_WORD_SECONDS", "15"))

# Audit anchors. A PEM file with an Ed25519 key, the same on every host; without it one is made in CHECKPOINT_HOME.
CHECKPOINT_ANCHOR_KEY = environment.text("CHECKPOINT_ANCHOR_KEY")
CHECKPOINT_ANCHOR_MINUTES = float(environment.text("CHECKPOINT_ANCHOR_MINUTES", "10"))

# Bulk. A mistake stays small, and the preview of a job fits on one page that a person can read.
CHECKPOINT_BULK_CAP = int(environment.text("CHECKPOINT_BULK_CAP", "200"))

# Artifacts: their bytes, by hash, in files or in an S3-compatible bucket. Sizes are bytes.
MEDIA_ROOT = CHECKPOINT_HOME / "artifacts"
STORAGES = environment.storages()
CHECKPOINT_LARGEST_ARTIFACT = int(environment.text("CHECKPOINT_LARGEST_ARTIFACT", str(64 * 1024 * 1024)))
CHECKPOINT_ARTIFACTS_PER_WORKFLOW = int(environment.text("CHECKPOINT_ARTIFACTS_PER_WORKFLOW", str(1024**3)))
CHECKPOINT_ORPHAN_GRACE_HOURS = float(environment.text("CHECKPOINT_ORPHAN_GRACE_HOURS", "24"))

# Questions. For how long a case can be put aside, how long an authentication counts where a policy wants a fresh one,
# and how large a file one can bring to a case.
CHECKPOINT_LONGEST_SNOOZE = timedelta(hours=float(environment.text("CHECKPOINT_LONGEST_SNOOZE_HOURS", "168")))
CHECKPOINT_STEP_UP_WITHIN = timedelta(minutes=float(environment.text("CHECKPOINT_STEP_UP_MINUTES", "10")))
CHECKPOINT_LARGEST_ATTACHMENT = int(environment.text("CHECKPOINT_LARGEST_ATTACHMENT", str(10 * 1024 * 1024)))  # bytes

INSTALLED_APPS = [
    "checkpoint",
    "approvals",
    "workers",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
]

MIDDLEWARE = [
    "checkpoint.middleware.OccasionMiddleware",
    "checkpoint.console.middleware.StorableQueryMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "checkpoint.console.static_files.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "checkpoint.console.middleware.SignedInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "checkpoint.console.middleware.RefusalMiddleware",
]

ROOT_URLCONF = "checkpoint.config.urls"
ASGI_APPLICATION = "checkpoint.config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True

LOGIN_URL = "/login/"
CSRF_FAILURE_VIEW = "checkpoint.console.refusals.csrf_failure"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# Errors go where the process's output goes; the supervisor, or the platform, keeps it.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"output": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["output"], "level": environment.text("LOG_LEVEL", "WARNING")},
}

# Notices. Without EMAIL_HOST there is no mailer, and nothing is mailed. EMAIL_TIMEOUT is for one mail as a whole.
CHECKPOINT_BASE_URL = environment.text("CHECKPOINT_BASE_URL", environment.local_address()).rstrip("/")
CHECKPOINT_REMIND_AFTER = timedelta(seconds=float(environment.text("CHECKPOINT_REMIND_AFTER", "14400")))
CHECKPOINT_ESCALATE_AFTER = timedelta(seconds=float(environment.text("CHECKPOINT_ESCALATE_AFTER", "86400")))
CHECKPOINT_NOTICE_ATTEMPTS = int(environment.text("CHECKPOINT_NOTICE_ATTEMPTS", "48"))  # about eleven hours
CHECKPOINT_PRIVATE_WEBHOOK_HOSTS = environment.words("CHECKPOINT_PRIVATE_WEBHOOK_HOSTS")
DEFAULT_FROM_EMAIL = environment.text("DEFAULT_FROM_EMAIL", "checkpoint@localhost")
MAILERS = environment.mailers("workers.notices.mail.DeadlineEmailBackend")
SILENCED_SYSTEM_CHECKS = ["mail.W001"]  # having no mailer is one way to run

# Browsers. CHECKPOINT_HTTPS=1 says that a TLS proxy stands in front; without it cookies must also work on loopback.
HTTPS = environment.flag("CHECKPOINT_HTTPS")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "base-uri": [CSP.NONE],
    "frame-ancestors": [CSP.NONE],
}

# The API. The rate holds for each token, whichever web process it calls.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["checkpoint.api.authentication.BearerToken"],
    "DEFAULT_PERMISSION_CLASSES": ["checkpoint.api.authentication.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["checkpoint.api.authentication.RateOfToken"],
    "DEFAULT_THROTTLE_RATES": {"token": environment.text("CHECKPOINT_API_RATE", "6000/minute")},
    "DEFAULT_PARSER_CLASSES": ["checkpoint.api.bodies.JsonDocument"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "checkpoint.api.problems.answer",
    "URL_FORMAT_OVERRIDE": None,  # what is answered is chosen by Accept alone
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Checkpoint",
    "DESCRIPTION": "Durable, reviewable side effects for AI agents.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SERVE_PUBLIC": True,
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_NAME_OVERRIDES": {},
}
