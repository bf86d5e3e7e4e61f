"""The settings of pip and uv, as those tools read them."""

import os
import sys
from pathlib import Path

import pytest

from reproducer.errors import InvalidDocumentError, UsageError
from reproducer.fetch.indexes import PUBLIC_INDEX, Indexes, redacted
from reproducer.fetch.settings import pip_files, pip_settings, uv_settings


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Variables of a user who has configured nothing."""
    (tmp_path / "home").mkdir()
    (tmp_path / "system").mkdir()
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_DIRS": str(tmp_path / "system")}


@pytest.fixture(autouse=True)
def _no_site_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This machine's own files do not count: the interpreter's, and what stands in /etc."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    real_open = Path.open

    def guarded(path: Path, *args: object, **keys: object) -> object:
        if str(path) in ("/etc/pip.conf", "/etc/uv/uv.toml"):
            raise FileNotFoundError(path)
        return real_open(path, *args, **keys)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", guarded)


def write(path: Path, text: str) -> Path:
    """Write a file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_nothing_configured_is_the_public_index(home: dict[str, str]) -> None:
    """Without settings there is one index and no find-links."""
    found = Indexes.from_user(environment=home)
    assert found.index_urls == (PUBLIC_INDEX,)
    assert found.find_links == ()


def test_pip_files_override_each_other_and_variables_override_all(home: dict[str, str], tmp_path: Path) -> None:
    """Global, user, site, PIP_CONFIG_FILE's neighbours: each later one wins; the environment wins over all."""
    write(
        tmp_path / "system" / "pip" / "pip.conf",
        "[global]\nindex-url = https://system/\nextra-index-url = https://x/\n",
    )
    write(tmp_path / "home" / ".pip" / "pip.conf", "[global]\nindex-url = https://legacy/\n")
    write(tmp_path / "home" / ".config" / "pip" / "pip.conf", "[global]\nindex-url = https://user/\ntimeout = 7\n")
    assert pip_settings(home).default_index == "https://user/"
    assert pip_settings(home).extra_indexes == ("https://x/",)
    assert pip_settings(home).timeout == 7.0
    write(tmp_path / "prefix" / "pip.conf", "[install]\nindex_url = https://site/\n[global]\nindex-url = https://no/\n")
    assert pip_settings(home).default_index == "https://site/"
    assert pip_settings({**home, "PIP_INDEX_URL": "https://env/"}).default_index == "https://env/"


def test_pip_config_file_replaces_the_users_own(home: dict[str, str], tmp_path: Path) -> None:
    """As pip has it: a named file is read last and the user's own not at all; the null device means none."""
    write(tmp_path / "home" / ".config" / "pip" / "pip.conf", "[global]\nextra-index-url = https://user/\n")
    named = write(tmp_path / "named.conf", "[global]\nindex-url = https://named/\n")
    assert pip_settings({**home, "PIP_CONFIG_FILE": str(named)}).extra_indexes == ()
    assert pip_settings({**home, "PIP_CONFIG_FILE": str(named)}).default_index == "https://named/"
    assert pip_files({**home, "PIP_CONFIG_FILE": os.devnull}) == ()


def test_lists_of_pip_stand_on_several_lines(home: dict[str, str], tmp_path: Path) -> None:
    """Values are separated by spaces or lines, and percent signs are just text."""
    write(
        tmp_path / "home" / ".config" / "pip" / "pip.conf",
        "[global]\nfind-links =\n    /one\n    https://u:p%40w@two/\nextra-index-url = https://a/ https://b/\n",
    )
    found = Indexes.from_user(environment=home)
    assert found.find_links == ("file:///one", "https://u:p%40w@two/")
    assert found.index_urls == (PUBLIC_INDEX, "https://a", "https://b")
    assert Indexes.from_user(environment={**home, "PIP_FIND_LINKS": "/three"}).find_links == ("file:///three",)


@pytest.mark.parametrize("variables", [{"PIP_NO_INDEX": "1"}, {"UV_NO_INDEX": "true"}])
def test_no_index_means_none(home: dict[str, str], variables: dict[str, str]) -> None:
    """No index is asked, those that a lock hints at neither; find-links stay."""
    found = Indexes.from_user(("https://hint/",), environment={**home, **variables, "PIP_FIND_LINKS": "/x"})
    assert found.index_urls == ()
    assert found.find_links == ("file:///x",)


def test_uv_variables(home: dict[str, str]) -> None:
    """Named and plain indexes, logins of named ones, both spellings of the default, find-links by commas."""
    variables = {
        "UV_DEFAULT_INDEX": "main=https://main/simple/",
        "UV_INDEX_URL": "https://old/",
        "UV_INDEX": "my-own=https://own/simple https://plain/?a=b",
        "UV_INDEX_MY_OWN_USERNAME": "me",
        "UV_INDEX_MY_OWN_PASSWORD": "a@b",
        "UV_EXTRA_INDEX_URL": "https://extra/ https://more/",
        "UV_FIND_LINKS": "/one, https://two/",
    }
    found = Indexes.from_user(environment={**home, **variables})
    assert found.index_urls == (
        "https://main/simple",
        "https://me:a%40b@own/simple",
        "https://plain/?a=b",
        "https://extra",
        "https://more",
    )
    assert found.find_links == ("file:///one", "https://two/")


def test_uv_files(home: dict[str, str], tmp_path: Path) -> None:
    """`[[index]]`, the older keys, flat and default and explicit indexes; user before system."""
    write(
        tmp_path / "home" / ".config" / "uv" / "uv.toml",
        'extra-index-url = ["https://extra/"]\nfind-links = ["/links"]\n'
        '[[index]]\nname = "a"\nurl = "https://a/"\n'
        '[[index]]\nname = "b"\nurl = "https://b/"\ndefault = true\n'
        '[[index]]\nname = "c"\nurl = "https://c/"\nexplicit = true\n'
        '[[index]]\nname = "d"\nurl = "https://d/"\nformat = "flat"\n'
        '[pip]\nextra-index-url = ["https://pip/"]\n',
    )
    write(tmp_path / "system" / "uv" / "uv.toml", 'index-url = "https://system/"\n')
    found = uv_settings(home)
    assert found.default_index == "https://b/"
    assert found.extra_indexes == ("https://a/", "https://extra/", "https://pip/")
    assert found.find_links == ("https://d/", "/links")
    assert uv_settings({**home, "UV_NO_CONFIG": "1"}).default_index is None
    named = write(tmp_path / "named.toml", 'index-url = "https://named/"\n')
    assert uv_settings({**home, "UV_CONFIG_FILE": str(named)}).default_index == "https://named/"
    assert uv_settings({**home, "UV_DEFAULT_INDEX": "https://env/"}).default_index == "https://env/"


def test_both_tools_are_asked_without_doubles(home: dict[str, str]) -> None:
    """Both defaults count; hints come last; a trailing slash makes no other index."""
    variables = {**home, "PIP_INDEX_URL": "https://pip/simple", "UV_DEFAULT_INDEX": "https://uv/simple/"}
    found = Indexes.from_user(("https://hint/simple", "https://uv/simple"), environment=variables)
    assert found.index_urls == ("https://uv/simple", "https://pip/simple", "https://hint/simple")


@pytest.mark.parametrize(
    "hint", ["file:///etc", "ftp://x/", "https://me:secret@x/", "/etc", "https://", "http://[", "javascript:x"]
)
def test_hints_of_a_stranger_are_plain_web_addresses(hint: str) -> None:
    """A lock cannot make penny read local folders or send its own logins; a password in it is not shown."""
    with pytest.raises(InvalidDocumentError) as caught:
        Indexes(index_urls=()).with_hints((hint,))
    assert "secret" not in str(caught.value)


def test_passwords_are_never_shown(home: dict[str, str]) -> None:
    """Neither the representation nor a redacted URL holds a login."""
    found = Indexes.from_user(
        environment={**home, "PIP_INDEX_URL": "https://me:secret@x/simple", "PIP_PROXY": "http://p:secret@y"}
    )
    assert "secret" in found.index_urls[0]
    assert "secret" not in repr(found)
    assert redacted("https://me:secret@x/simple?token=secret#secret") == "https://***@x/simple"
    assert redacted("http://[") == "a malformed URL"


def test_malformed_files_are_named(home: dict[str, str], tmp_path: Path) -> None:
    """The error names the file; a line too, where the parser knows it."""
    path = write(tmp_path / "home" / ".config" / "pip" / "pip.conf", "index-url = https://x/\n")
    with pytest.raises(UsageError, match=f"{path}, line 1"):
        pip_settings(home)
    path = write(tmp_path / "home" / ".config" / "uv" / "uv.toml", "index-url = \n")
    with pytest.raises(UsageError, match="line 1"):
        uv_settings(home)
    with pytest.raises(UsageError, match="timeout"):
        pip_settings({**home, "PIP_CONFIG_FILE": os.devnull, "PIP_TIMEOUT": "soon"})


def test_certificates(home: dict[str, str]) -> None:
    """PIP_CERT wins over what requests and curl are told."""
    assert Indexes.from_user(environment={**home, "REQUESTS_CA_BUNDLE": "/r"}).cert == Path("/r")
    assert Indexes.from_user(environment={**home, "REQUESTS_CA_BUNDLE": "/r", "PIP_CERT": "/p"}).cert == Path("/p")
