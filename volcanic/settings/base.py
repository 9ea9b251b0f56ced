"""Settings of Django itself: keys, applications, middleware, templates, static files, the admin's menu."""

from typing import Any

from django.templatetags.static import static
from django.urls import reverse_lazy

from volcanic.settings.env import BASE_DIR, PRODUCTION, VAR_DIR, env, generated_secret

PRODUCTION = PRODUCTION
VAR_DIR = VAR_DIR
DEBUG = False
SECRET_KEY: str = env.str("SECRET_KEY") if PRODUCTION else env.str("SECRET_KEY", None) or generated_secret("secret_key")
# Keys of encrypted fields, the newest first. The newest key encrypts, all keys decrypt. They differ from SECRET_KEY so
# that each can be rotated without the other.
FIELD_KEYS: list[str] = (
    env.list("FIELD_KEYS") if PRODUCTION else env.list("FIELD_KEYS", []) or [generated_secret("field_key")]
)
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS") if PRODUCTION else env.list("ALLOWED_HOSTS", ["*"])
# Address of the web process under `make up`.
HOST: str = env.str("HOST", "127.0.0.1") or "127.0.0.1"
PORT: int = env.int("PORT", 8000)
PUBLIC_URL: str = (env.str("PUBLIC_URL") if PRODUCTION else env.str("PUBLIC_URL", f"http://localhost:{PORT}")) or ""

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "axes",
    "volcanic.apps.VolcanicConfig",
    "trust.apps.TrustConfig",
    "a2a_server.apps.A2AServerConfig",
    "a2a_client.apps.A2AClientConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "volcanic.middleware.PresenceMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "volcanic.urls"
ASGI_APPLICATION = "volcanic.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
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
    },
]

LANGUAGE_CODE = "en"
TIME_ZONE: str = env.str("TIME_ZONE", "UTC")
USE_I18N = True
FORMAT_MODULE_PATH = ["volcanic.formats"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
# Served by the web process from the installed packages themselves: no collectstatic step to forget.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

WORKSPACES_DIR: str = env.str("WORKSPACES_DIR", str(VAR_DIR / "workspaces"))

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
}


def _link(title: str, icon: str, screen: str, allowed: str) -> dict[str, Any]:
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{screen}"),
        "permission": f"volcanic.admin.base.{allowed}",
    }


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Volcanic",
    "SITE_HEADER": "Volcanic",
    "SITE_SUBHEADER": "Your assistant on the A2A network",
    "SITE_SYMBOL": "volcano",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("volcanic/favicon.svg")}
    ],
    "SHOW_HISTORY": False,  # the audit has all changes, not only the admin's
    "SHOW_VIEW_ON_SITE": False,
    "DASHBOARD_CALLBACK": "volcanic.admin.dashboard.dashboard",
    "STYLES": [lambda _request: static("volcanic/admin.css")],
    "SIDEBAR": {
        "show_search": False,
        "navigation": [
            {
                "items": [
                    _link("Overview", "dashboard", "index", "is_owner"),
                    {
                        **_link("Reviews", "inbox", "trust_review_changelist", "is_owner"),
                        "badge": "trust.admin.reviews.waiting_badge",
                    },
                    _link("Tasks", "task", "a2a_server_task_changelist", "is_owner"),
                    _link("Webhooks", "webhook", "a2a_server_pushconfig_changelist", "is_owner"),
                    _link("Sessions", "forum", "volcanic_session_changelist", "is_owner"),
                    _link("Notifications", "notifications", "volcanic_notification_changelist", "is_owner"),
                    _link("Deliveries", "outgoing_mail", "volcanic_notificationdelivery_changelist", "is_owner"),
                    _link("Memories", "lightbulb", "volcanic_memory_changelist", "is_owner"),
                ]
            },
            {
                "title": "Trust",
                "separator": True,
                "items": [
                    _link("Callers", "smart_toy", "trust_caller_changelist", "is_owner"),
                    _link("Skills", "extension", "trust_skill_changelist", "is_owner"),
                    _link("Grants", "verified_user", "trust_grant_changelist", "is_owner"),
                    _link("Identities", "badge", "trust_calleridentity_changelist", "is_owner"),
                    _link("Decisions", "gavel", "trust_observation_changelist", "is_owner"),
                    _link("Drafts", "draft", "trust_skilldraft_changelist", "is_owner"),
                    _link("Audit", "history", "trust_auditentry_changelist", "is_owner"),
                    _link("Refused calls", "block", "trust_refusedcall_changelist", "is_superuser"),
                ],
            },
            {
                "title": "Settings",
                "separator": True,
                "items": [
                    _link("Workspaces", "folder", "volcanic_workspace_changelist", "is_owner"),
                    _link("Users", "person", "auth_user_changelist", "is_superuser"),
                    _link("Failed logins", "lock", "axes_accessattempt_changelist", "is_superuser"),
                ],
            },
        ],
    },
}
