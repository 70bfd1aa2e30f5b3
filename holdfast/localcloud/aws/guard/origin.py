"""
Requests that a web page made a browser send. Pure.

A page cannot change "Origin" and "Sec-Fetch-Site" (Fetch standard); a page whose name resolves to this machine has that
name in Host.
"""

import ipaddress
import re

from werkzeug.datastructures import Headers

HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9.-]+))(?::[0-9]{1,5})?")
OWN_SITES = ("none", "same-origin")


def foreign(headers: Headers) -> str:
    host = headers.get("Host", "")
    if not _is_ours(host):
        return f"the Host of this request is {host!r}; allowed: localhost, 127.0.0.1, [::1] or an address of the nodes"
    if "Origin" in headers:
        return f"the request comes from a web page of {headers['Origin']!r}; web pages are not served"
    site = headers.get("Sec-Fetch-Site", "none")
    if site not in OWN_SITES:
        return f"the request comes from a browser with Sec-Fetch-Site {site!r}; allowed: {', '.join(OWN_SITES)}"
    return ""


def _is_ours(host: str) -> bool:
    found = HOST.fullmatch(host)
    if found is None:
        return False
    name = found["six"] or found["name"]
    if name.lower() == "localhost":
        return True
    try:
        return not ipaddress.ip_address(name).is_global
    except ValueError:
        return False
