"""HTTP server of the console: loopback, one secret, GET alone."""

from holdfast.cli.console.serving.access import Access, Refusal
from holdfast.cli.console.serving.application import Application
from holdfast.cli.console.serving.server import ConsoleServer, listen

__all__ = ["Access", "Application", "ConsoleServer", "Refusal", "listen"]
