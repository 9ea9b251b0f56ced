from django.apps import AppConfig


class A2AClientConfig(AppConfig):
    """The A2A client, with which the assistant will call other agents. Not implemented yet."""

    name = "a2a_client"
    verbose_name = "A2A client"
