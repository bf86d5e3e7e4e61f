"""Pages of indexes, from strangers."""

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.errors import InvalidDocumentError
from reproducer.fetch.simple import Candidate, filename_of, read_page

JSON = "application/vnd.pypi.simple.v1+json"
PAGE = "https://index/simple/six/"
SHA = "ab" * 32


def read(body: str | bytes, content_type: str = "text/html", url: str = PAGE) -> tuple[Candidate, ...]:
    """The files of a page."""
    data = body.encode() if isinstance(body, str) else body
    return read_page(data, content_type=content_type, url=url, source="https://index/simple")


def test_html_page() -> None:
    """Relative links, digests in fragments, yanked releases, required Pythons, escaped names."""
    found = read(
        f'<a href="../../f/six-1.0.tar.gz#sha256={SHA}" data-requires-python="&gt;=3.8">six</a>'
        '<a href="https://cdn/torch-2.0%2Bcpu-cp311-cp311-linux_x86_64.whl" data-yanked="broken">x</a>'
        '<a>no link</a><a href="">nothing</a><a href="/">folder</a>'
    )
    assert found == (
        Candidate("six-1.0.tar.gz", "https://index/f/six-1.0.tar.gz", SHA, None, None, ">=3.8", "https://index/simple"),
        Candidate(
            "torch-2.0+cpu-cp311-cp311-linux_x86_64.whl",
            "https://cdn/torch-2.0%2Bcpu-cp311-cp311-linux_x86_64.whl",
            None,
            None,
            "broken",
            None,
            "https://index/simple",
        ),
    )


def test_html_base() -> None:
    """A base element moves relative links."""
    (found,) = read('<base href="https://cdn/x/"><a href="six-1.0.tar.gz">')
    assert found.url == "https://cdn/x/six-1.0.tar.gz"


def test_json_page() -> None:
    """Digest, size and yanked as PEP 691 has them; entries that are none are left out."""
    files = [
        {"filename": "six-1.0.tar.gz", "url": "/f/six-1.0.tar.gz", "hashes": {"sha256": SHA.upper()}, "size": 5},
        {"filename": "six-1.1.tar.gz", "url": "/f/six-1.1.tar.gz", "hashes": {}, "yanked": True},
        {"filename": "six-1.2.tar.gz", "url": "/f/other-name.tar.gz", "hashes": {}},
        {"filename": "six-1.3.tar.gz", "url": 5},
        {"filename": "six-1.4.tar.gz", "url": "/f/six-1.4.tar.gz", "hashes": 3, "size": -1, "yanked": 1},
        "text",
    ]
    found = read(json.dumps({"files": files}), JSON)
    assert [(each.filename, each.sha256, each.size, each.yanked) for each in found] == [
        ("six-1.0.tar.gz", SHA, 5, None),
        ("six-1.1.tar.gz", None, None, ""),
        ("six-1.4.tar.gz", None, None, None),
    ]


@pytest.mark.parametrize(
    "link",
    [
        "file:///etc/passwd",
        "ftp://x/six-1.0.tar.gz",
        "javascript:six-1.0.tar.gz",
        "https://x/..%2F..%2Fetc%2Fpasswd",
        "https://x/-rf",
        "http://[/six-1.0.tar.gz",
        "https://x/" + "a" * 9000,
        "https://x/a%00b",
    ],
)
def test_links_that_lead_astray_are_left_out(link: str) -> None:
    """A page on the web never leads to a local file, to another scheme or to a name that is a path or an option."""
    assert read(f'<a href="{link}">x</a>') == ()
    assert read(json.dumps({"files": [{"filename": "six-1.0.tar.gz", "url": link}]}), JSON) == ()


def test_a_page_on_disk_leads_to_files_on_disk() -> None:
    """An index in a folder links to its own files."""
    (found,) = read('<a href="../../files/six-1.0.tar.gz">', url="file:///opt/simple/six/index.html")
    assert found.url == "file:///opt/files/six-1.0.tar.gz"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"files": 3}', b"{", b"\xff", b'{"files":[],"files":[]}', b"[" * 99999]
)
def test_json_that_is_no_page(body: bytes) -> None:
    """What says it is PEP 691 and is not is an error, not an empty page."""
    with pytest.raises(InvalidDocumentError):
        read(body, JSON)


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=300) | st.text(alphabet="<a href=\"'#/:.&;base>x1-", max_size=120).map(str.encode))
def test_no_page_breaks_the_reader(body: bytes) -> None:
    """Whatever a stranger's HTML is, the result is candidates with plain names and allowed schemes."""
    for each in read(body):
        assert filename_of(each.url) == each.filename
        assert "/" not in each.filename
        assert each.url.startswith(("http://", "https://"))


@pytest.mark.parametrize("piece", ["<a ", "<!--", "</", "<?", '<a "', "<a a='", "<![", "<a href=x-1.whl>", "<"])
def test_hostile_html_takes_little_time(piece: str) -> None:
    """A page that a parser of HTML would search again and again is read once, or refused."""
    body = piece.encode() * ((4 << 20) // len(piece))
    start = time.monotonic()
    with suppress(InvalidDocumentError):
        read_page(body, content_type="text/html", url="https://host/simple/x/", source="s")
    assert time.monotonic() - start < 60  # for ever, if it searched again and again
