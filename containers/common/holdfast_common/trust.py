"""Trust in the API server of one cluster, for each client that Holdfast has of it."""

import ssl


def kubernetes_trust(authority: str) -> ssl.SSLContext:
    """
    Return a context that trusts the authority of one cluster and nothing else: chain, name and dates are checked.

    Python 3.13 and newer refuse by default what RFC 5280 does not allow. The authority of an EKS cluster that began
    with Kubernetes 1.16 or older has no key identifiers, and some have no key usage (aws/containers-roadmap#2638,
    awslabs/mcp#3791); neither has any part in whom a client believes.

    Args:
        authority: Its certificate, PEM

    Raises:
        ssl.SSLError, ValueError: it is none.
    """
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
