from django.apps import AppConfig


class A2AClientConfig(AppConfig):
    """The outbound half: the assistant calls other agents. Nothing is built yet."""

    name = "a2a_client"
    verbose_name = "A2A client"
