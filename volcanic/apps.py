from django.apps import AppConfig


class VolcanicConfig(AppConfig):
    """The project and the assistant itself."""

    name = "volcanic"
    verbose_name = "Assistant"

    def ready(self) -> None:
        from volcanic import checks  # noqa: F401  registers the system checks
        from volcanic.toolbox import checks as toolbox_checks  # noqa: F401
        from volcanic.toolbox import register_tools

        register_tools()
