"""The newest release that satisfies a specifier."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.sources import Artefact
from reproducer.errors import NotCheckedError, UsageError
from reproducer.fetch import find_release
from reproducer.fetch.indexes import Indexes
from reproducer.fetch.web import Patience

Find = Callable[..., Artefact]


@pytest.fixture
def find(indexes: Indexes, quick: Patience, reporter: Any) -> Find:
    """find_release on the one index."""

    def run(project: str, specifier: str, kind: Any = "sdist", **keys: Any) -> Artefact:
        settings = {"indexes": indexes, "reporter": reporter, "patience": quick, **keys}
        return find_release(project, specifier, kind, **settings)

    return run


@pytest.fixture
def releases(index: Any) -> dict[str, Artefact]:
    """Releases of one project, by version."""
    habits: dict[str, dict[str, Any]] = {
        "1.0": {},
        "1.9": {},
        "1.10": {},
        "2.0rc1": {},
        "1.11": {"page": {"yanked": "broken"}},
        "1.12": {"page": {"requires-python": ">=3.12"}},
    }
    return {version: index.add(f"six-{version}.tar.gz", version.encode(), **each) for version, each in habits.items()}


@pytest.mark.parametrize(
    ("specifier", "version"),
    [
        (">=1.0", "1.10"),
        ("<1.10", "1.9"),
        ("==1.0", "1.0"),
        ("1.9", "1.9"),
        ("~=1.0", "1.10"),
        ("==1.11", "1.11"),
        ("==2.0rc1", "2.0rc1"),
        ("==1.*", "1.10"),
    ],
)
def test_versions(find: Find, releases: dict[str, Artefact], specifier: str, version: str) -> None:
    """PEP 440 order; pre-releases and withdrawn ones only where they are pinned; other Pythons' never."""
    assert find("six", specifier) == releases[version]


def test_prereleases_where_they_are_asked_for(find: Find, releases: dict[str, Artefact]) -> None:
    """They count only then."""
    assert find("Six", ">=1.0", prereleases=True) == releases["2.0rc1"]
    assert find("six", ">=1.0", python="3.12") == releases["1.12"]


def test_wheels_for_this_host(index: Any, find: Find) -> None:
    """The most specific wheel of the newest version that has one for this host."""
    index.add("six-2.0-cp312-cp312-win_amd64.whl", b"w")
    index.add("six-1.0-py3-none-any.whl", b"a")
    index.add("six-2.0.tar.gz", b"s")
    assert find("six", ">=1", "wheel").filename == "six-1.0-py3-none-any.whl"


@pytest.mark.parametrize("speaks_json", [True, False])
def test_sources_that_say_neither_digest_nor_size(index: Any, find: Find, *, speaks_json: bool) -> None:
    """The file is read once to learn them."""
    index.json = speaks_json
    wheel = index.add("six-1.0.tar.gz", b"abc" * 1000, listed_sha256=None, page={"size": None}, statuses=[503])
    assert find("six", "1.0") == wheel


def test_find_links(tmp_path: Path, find: Find, make_artefact: Callable[[str, bytes], Artefact]) -> None:
    """A local file is hashed."""
    (tmp_path / "torch-2.0+cpu-py3-none-any.whl").write_bytes(b"abc")
    found = find("torch", "==2.0", "wheel", indexes=Indexes((), (tmp_path.as_uri(),)))
    assert found == make_artefact("torch-2.0+cpu-py3-none-any.whl", b"abc")


def test_what_is_not_there(index: Any, find: Find, releases: dict[str, Artefact]) -> None:
    """The error says what there is, and which source could not be asked."""
    with pytest.raises(NotCheckedError, match=r"no source distribution of six satisfies >=3 \(there are 2.0rc1, 1.11"):
        find("six", ">=3")
    with pytest.raises(NotCheckedError, match="no source has a wheel"):
        find("six", ">=1", "wheel")
    index.down = 503
    with pytest.raises(NotCheckedError, match="answered 503"):
        find("seven", ">=1")
    assert len(releases) == 6


@pytest.mark.parametrize("specifier", ["", "latest", ">=", "==x", ">=1,", "1.0 ; x"])
def test_specifiers_that_are_none(find: Find, releases: dict[str, Artefact], specifier: str) -> None:
    """Nonsense is wrong usage; an empty specifier means any version."""
    if specifier in ("", ">=1,"):
        assert find("six", specifier) == releases["1.10"]
    else:
        with pytest.raises(UsageError, match="PEP 440"):
            find("six", specifier)


def test_an_index_that_lies_about_a_digest(index: Any, find: Find) -> None:
    """Where the size is missing the file is read, and the digest has to be what the page says."""
    index.json = False
    index.add("six-1.0.tar.gz", b"abc", listed_sha256="0" * 64)
    with pytest.raises(NotCheckedError, match="not what its index says"):
        find("six", "1.0")
