"""Configuration of the agent; loads nothing else of it."""

from holdfast_agent.configuration.configuration import DEFAULT_PATH, Configuration, ConfigurationError, keys, load

__all__ = ["DEFAULT_PATH", "Configuration", "ConfigurationError", "keys", "load"]
