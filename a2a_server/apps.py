from django.apps import AppConfig


class A2AServerConfig(AppConfig):
    """The inbound half: other agents call the assistant."""

    name = "a2a_server"
    verbose_name = "A2A server"

    def ready(self) -> None:
        from a2a_server import receivers  # noqa: F401  listens to the owner's decisions
