"""Reader of session documents."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Resource, Values
from holdfast.validation.model import SessionDocument

DOCUMENT = "AWS::SSM::Document"


def session_documents(values: Values, resources: Iterator[Resource]) -> Iterator[SessionDocument]:
    """Documents of type Session with Run As, whose content is an object."""
    for resource in resources:
        properties = values.properties(resource)
        inputs = properties.get("Content", "inputs")
        if (
            properties.get("DocumentType").text() == "Session"
            and inputs.get("runAsEnabled").boolean(default=False) is True
        ):
            user = inputs.get("runAsDefaultUser")
            yield SessionDocument(
                path=resource.path, places={"default_user": inputs.place("runAsDefaultUser")}, default_user=user.text()
            )
