"""Writes docs/reference/findings: ``python -m holdfast.validation``, after a rule or an example was changed."""

from holdfast.validation.pages import write

if __name__ == "__main__":
    write()
