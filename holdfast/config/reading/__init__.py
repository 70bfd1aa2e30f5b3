"""YAML document to models, with the line of every problem."""

from holdfast.config.reading.document import Document, read
from holdfast.config.reading.explanations import allowed_at, bare, inner_model
from holdfast.config.reading.loading import load, parse

__all__ = ["Document", "allowed_at", "bare", "inner_model", "load", "parse", "read"]
