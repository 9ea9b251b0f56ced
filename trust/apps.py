from django.apps import AppConfig
from django.db.models.signals import post_migrate


class TrustConfig(AppConfig):
    """Django's configuration of the app: its checks, receivers, built-in skills and tools."""

    name = "trust"
    verbose_name = "Trust"

    def ready(self) -> None:
        from trust import checks  # noqa: F401
        from trust.learning import receivers  # noqa: F401
        from trust.services import builtin_skills_ensure
        from trust.toolbox import register_tools

        post_migrate.connect(builtin_skills_ensure, sender=self)
        register_tools()
