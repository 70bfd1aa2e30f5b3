"""Content of session documents."""

from typing import Any


def session_document(*, default_user: str) -> dict[str, Any]:
    """
    Return the content of a document of shells that run as a user.

    Source: Systems Manager user guide, "Session document schema"; its required inputs are there.
    """
    return {
        "schemaVersion": "1.0",
        "description": "Shells as a user of the node",
        "sessionType": "Standard_Stream",
        "inputs": {
            "s3EncryptionEnabled": True,
            "cloudWatchEncryptionEnabled": True,
            "cloudWatchStreamingEnabled": False,
            "runAsEnabled": True,
            "runAsDefaultUser": default_user,
        },
    }
