from django.apps import AppConfig


class A2AServerConfig(AppConfig):
    """The inbound half of the assistant: serves the A2A calls of other agents."""

    name = "a2a_server"
    verbose_name = "A2A server"

    def ready(self) -> None:
        from a2a_server import receivers  # noqa: F401  connects the receivers of the owner's decisions
