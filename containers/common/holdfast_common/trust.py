"""TLS trust in the API server of one cluster."""

import ssl


def kubernetes_trust(authority: str) -> ssl.SSLContext:
    """
    Return a context that trusts one cluster's authority (PEM) only; raises ssl.SSLError or ValueError if invalid.

    Python 3.13 and newer reject what RFC 5280 does not allow. The authority of an EKS cluster that began with
    Kubernetes 1.16 or older has no key identifiers, and some have no key usage (aws/containers-roadmap#2638,
    awslabs/mcp#3791); neither matters for trust.
    """
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
