"""Print the JSON Schema of the environment file: ``python -m holdfast.config``."""

from holdfast.config.pages import schema_text

if __name__ == "__main__":
    print(schema_text(), end="")
