"""Settings of security: cookies, transport, content security policy, login throttling."""

from datetime import timedelta

from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE

from volcanic.settings.env import PRODUCTION, at_least, env

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "admin:login"

AXES_FAILURE_LIMIT: int = env.int("LOGIN_FAILURE_LIMIT", 5, validate=at_least(1))
AXES_COOLOFF_TIME = timedelta(seconds=env.int("LOGIN_COOLOFF_SECONDS", 900, validate=at_least(1)))
# Locks out a pair of user name and address, so that a stranger at another address can't lock the owner out.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_TEMPLATE = "lockout.html"
AXES_VERBOSE = False
AXES_IPWARE_PROXY_COUNT: int = env.int("PROXY_COUNT", 0, validate=at_least(0))
# Without a proxy in front, a visitor can forge X-Forwarded-For.
AXES_IPWARE_META_PRECEDENCE_ORDER = ["HTTP_X_FORWARDED_FOR"] if AXES_IPWARE_PROXY_COUNT else ["REMOTE_ADDR"]

CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", [])
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRODUCTION
SESSION_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT: bool = env.bool("SECURE_SSL_REDIRECT", PRODUCTION)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if AXES_IPWARE_PROXY_COUNT else None
SECURE_HSTS_SECONDS: int = env.int("SECURE_HSTS_SECONDS", 31536000 if PRODUCTION else 0, validate=at_least(0))
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        # The admin theme's Alpine needs eval and inline styles. The admin is the only HTML that the product serves.
        "script-src": [SELF, UNSAFE_EVAL, UNSAFE_INLINE],
        "style-src": [SELF, UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "font-src": [SELF, "data:"],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
        "base-uri": [SELF],
    }
}
