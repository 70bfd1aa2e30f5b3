from aws_cdk import aws_ssm as ssm
from constructs import Construct

from holdfast.validation import translation


class SessionDocument(Construct):
    """
    Session document whose sessions run as a user of the node instead of root.

    A user's role names its own by the tag SSMSessionRunAs (Systems Manager user guide, "Turn on Run As support for
    Linux and macOS managed nodes"). The preferences of the account, SSM-SessionManagerRunShell, stay as they are.
    """

    document_name: str

    def __init__(self, scope: Construct, construct_id: str, *, name: str, default_user: str) -> None:
        """
        Define a document.

        Args:
            name: Letters, digits, ``_``, ``-`` and ``.``; unique in the account and region.
            default_user: Account of the nodes for roles without the tag; not root.
        """
        super().__init__(scope, construct_id)
        self.document_name = name
        ssm.CfnDocument(
            self,
            "Resource",
            name=name,
            document_type="Session",
            content=translation.session_document(default_user=default_user),
            update_method="NewVersion",
        )
