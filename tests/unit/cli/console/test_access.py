"""Who may read the console: this page, on this machine, with the secret, and only read."""

import pytest

from holdfast.cli.console.serving import Access, Refusal

ACCESS = Access(port=8800, secret="s3cret")
HOST = {"host": "127.0.0.1:8800"}


@pytest.mark.parametrize(
    "headers",
    [
        HOST,
        {"host": "localhost:8800"},
        {**HOST, "origin": "http://127.0.0.1:8800", "sec-fetch-site": "same-origin"},
        {**HOST, "sec-fetch-site": "none"},
    ],
)
def test_the_own_page_is_served(headers: dict[str, str]) -> None:
    assert ACCESS.admit("GET", "/s3cret/stream", headers) == "stream"
    assert ACCESS.admit("HEAD", "/s3cret/", headers) == ""


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({}, "got Host ''"),
        ({"host": "127.0.0.1"}, "got Host"),
        ({"host": "127.0.0.1:8801"}, "allowed: 127.0.0.1:8800 or localhost:8800"),
        ({"host": "evil.example:8800"}, "got Host 'evil.example:8800'"),
        ({"host": "127.0.0.1.evil.example:8800"}, "got Host"),
        ({**HOST, "origin": "http://evil.example"}, "got a request of the web page 'http://evil.example'"),
        ({**HOST, "origin": "null"}, "web page"),
        ({**HOST, "origin": "http://localhost:8800"}, "allowed: http://127.0.0.1:8800"),
        ({**HOST, "origin": "https://127.0.0.1:8800"}, "web page"),
        ({**HOST, "origin": "http://127.0.0.1:9999"}, "web page"),
        ({**HOST, "sec-fetch-site": "cross-site"}, "got Sec-Fetch-Site"),
        ({**HOST, "sec-fetch-site": "same-site"}, "got Sec-Fetch-Site"),
    ],
)
def test_a_foreign_page_or_name_is_refused_even_with_the_secret(headers: dict[str, str], text: str) -> None:
    found = ACCESS.admit("GET", "/s3cret/stream", headers)
    assert isinstance(found, Refusal)
    assert found.status == 403
    assert text in found.text


@pytest.mark.parametrize(
    "path", ["", "/", "/stream", "/s3cre/stream", "/s3crets/", "/S3CRET/", "//s3cret/", "/s3cret", "/\udc80/", "/é/"]
)
def test_nothing_is_served_without_the_secret(path: str) -> None:
    found = ACCESS.admit("GET", path, HOST)
    assert isinstance(found, Refusal)
    assert (found.status, "holdfast console" in found.text) == (403, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_the_page_is_read_only(method: str) -> None:
    found = ACCESS.admit(method, "/s3cret/", HOST)
    assert isinstance(found, Refusal)
    assert found.status == 405


def test_a_stranger_learns_nothing_of_methods_or_pages() -> None:
    found = ACCESS.admit("POST", "/x/", HOST)
    assert isinstance(found, Refusal)
    assert found.status == 403
