"""The Django project, and the assistant itself."""

__version__ = "0.1.0"
