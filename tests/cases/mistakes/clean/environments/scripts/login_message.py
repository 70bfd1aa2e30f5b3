"""Says on every login what the cluster is for."""

from pathlib import Path


def main() -> None:
    """Write the message of the day."""
    Path("/etc/motd").write_text("This cluster trains language models. Ask platform@example.com.\n")


if __name__ == "__main__":
    main()
