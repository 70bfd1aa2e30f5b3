"""The agent's configuration, which every command reads; it loads nothing else of the agent."""

from holdfast_agent.configuration.configuration import DEFAULT_PATH, Configuration, ConfigurationError, keys, load

__all__ = ["DEFAULT_PATH", "Configuration", "ConfigurationError", "keys", "load"]
