"""Generator of docs/findings: ``python -m holdfast.validation``."""

from holdfast.validation.pages import write

if __name__ == "__main__":
    write()
