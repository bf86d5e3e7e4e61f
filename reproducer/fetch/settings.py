"""What pip's and uv's own configuration files and environment variables say, as those tools read them."""

import configparser
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reproducer.errors import UsageError

_PIP_KEYS = ("index-url", "extra-index-url", "find-links", "no-index", "cert", "proxy", "timeout")
_NAMED_INDEX = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)")
_TRUE = {"1", "true", "yes", "on", "y", "t"}
_LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Settings of one tool; what it does not set is None or empty.

    Attributes:
        default_index: the main index.
        extra_indexes: further ones, first asked first.
        find_links: folders or pages with files.
        no_index: no index is to be asked.
        cert: file with certificates that are trusted.
        proxy: URL of a proxy.
        timeout: seconds without an answer.
    """

    default_index: str | None = None
    extra_indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    cert: str | None = None
    proxy: str | None = None
    timeout: float | None = None


def pip_settings(environment: Mapping[str, str]) -> Settings:
    """Pip's settings: files from global to site, each later one wins; environment variables beat them all.

    Raises:
        UsageError: a configuration file is malformed.
    """
    values: dict[str, str] = {}
    for path in pip_files(environment):
        values.update(_pip_file(path))
    for key in _PIP_KEYS:
        name = f"PIP_{key.upper().replace('-', '_')}"
        if key == "timeout" and not environment.get(name):
            name = "PIP_DEFAULT_TIMEOUT"
        if environment.get(name):
            values[key] = environment[name]
    return Settings(
        default_index=values.get("index-url"),
        extra_indexes=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=values.get("no-index", "").strip().lower() in _TRUE,
        cert=values.get("cert"),
        proxy=values.get("proxy"),
        timeout=_seconds(values.get("timeout")),
    )


def pip_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The configuration files pip would read, least important first."""
    named = environment.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return ()
    home = Path(environment.get("HOME") or Path.home())
    system = [Path(folder) / "pip" / "pip.conf" for folder in reversed(_system_folders(environment))]
    files = [*system, Path("/etc/pip.conf")]
    if not (named and Path(named).exists()):
        files += [home / ".pip" / "pip.conf", _user_folder(environment, home) / "pip" / "pip.conf"]
    files.append(Path(sys.prefix) / "pip.conf")
    return (*files, *([Path(named)] if named else []))


def uv_settings(environment: Mapping[str, str]) -> Settings:
    """Uv's settings: its user file over its system file, environment variables before both.

    A `uv.toml` beside the lock is not read: a stranger's folder does not say where this user's packages come from.

    Raises:
        UsageError: a configuration file is malformed.
    """
    default: str | None = None
    extra: list[str] = []
    links: list[str] = []
    no_index = environment.get("UV_NO_INDEX", "").strip().lower() in _TRUE
    entries = [_named(text) for text in environment.get("UV_INDEX", "").split()]
    extra += [_with_login(url, name, environment) for name, url in entries]
    extra += environment.get("UV_EXTRA_INDEX_URL", "").split()
    links += [part.strip() for part in environment.get("UV_FIND_LINKS", "").split(",") if part.strip()]
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if default is None and environment.get(variable, "").strip():
            name, url = _named(environment[variable].strip())
            default = _with_login(url, name, environment)
    for path in uv_files(environment):
        table = _uv_file(path)
        inner = table.get("pip") if isinstance(table.get("pip"), dict) else {}
        for part in (table, inner or {}):
            found, more, flat = _uv_indexes(part, environment)
            default = default or found
            extra += more
            links += flat
            no_index = no_index or part.get("no-index") is True
    return Settings(default_index=default, extra_indexes=_unique(extra), find_links=_unique(links), no_index=no_index)


def uv_files(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The configuration files of uv that belong to the user, most important first."""
    if environment.get("UV_NO_CONFIG", "").strip().lower() in _TRUE:
        return ()
    named = environment.get("UV_CONFIG_FILE")
    if named:
        return (Path(named),)
    home = Path(environment.get("HOME") or Path.home())
    system = [Path(folder) / "uv" / "uv.toml" for folder in _system_folders(environment)]
    return (_user_folder(environment, home) / "uv" / "uv.toml", *system, Path("/etc/uv/uv.toml"))


def _pip_file(path: Path) -> dict[str, str]:
    text = _text(path)
    if text is None:
        return {}
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else str(path)
        raise UsageError("pip's configuration file is malformed", where=place, todo="correct it") from error
    values: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            for name, value in parser.items(section):
                key = name.lower().replace("_", "-").removeprefix("--")
                if key in _PIP_KEYS or key == "default-timeout":
                    values[key.removeprefix("default-")] = value
    return values


def _uv_file(path: Path) -> dict[str, Any]:
    text = _text(path)
    if text is None:
        return {}
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError("uv's configuration file is malformed", where=str(path), why=str(error)) from error


def _uv_indexes(table: dict[str, Any], environment: Mapping[str, str]) -> tuple[str | None, list[str], list[str]]:
    """Default index, further indexes and find-links of one table of a `uv.toml`."""
    default: str | None = None
    extra: list[str] = []
    links: list[str] = []
    for entry in _list(table.get("index")):
        url = entry.get("url") if isinstance(entry, dict) else None
        if not isinstance(url, str) or entry.get("explicit") is True:
            continue
        name = entry.get("name")
        url = _with_login(url, name if isinstance(name, str) else None, environment)
        if entry.get("format") == "flat":
            links.append(url)
        elif entry.get("default") is True:
            default = default or url
        else:
            extra.append(url)
    if isinstance(table.get("index-url"), str):
        default = default or table["index-url"]
    extra += [url for url in _list(table.get("extra-index-url")) if isinstance(url, str)]
    links += [url for url in _list(table.get("find-links")) if isinstance(url, str)]
    return default, extra, links


def _text(path: Path) -> str | None:
    """The text of a configuration file; None where there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError("cannot be read", where=str(path), why=error.strerror or str(error)) from error
    if len(data) > _LARGEST_FILE:
        raise UsageError(f"is larger than {_LARGEST_FILE} bytes", where=str(path))
    return data.decode("utf-8", "replace")


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _named(text: str) -> tuple[str | None, str]:
    """`name=URL` or just a URL, as uv takes them."""
    match = _NAMED_INDEX.fullmatch(text)
    return (match[1], match[2]) if match else (None, text)


def _with_login(url: str, name: str | None, environment: Mapping[str, str]) -> str:
    """The URL with the user and password that uv's variables give for a named index."""
    if name is None:
        return url
    from urllib.parse import quote, urlsplit, urlunsplit

    stem = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    user, password = environment.get(f"{stem}_USERNAME", ""), environment.get(f"{stem}_PASSWORD", "")
    parts = urlsplit(url)
    if not (user or password) or "@" in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}"))


def _system_folders(environment: Mapping[str, str]) -> list[str]:
    return [folder for folder in (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if folder]


def _user_folder(environment: Mapping[str, str], home: Path) -> Path:
    named = environment.get("XDG_CONFIG_HOME")
    return Path(named) if named else home / ".config"


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError as error:
        raise UsageError(f"pip's timeout is no number: {text!r}", where="pip's settings") from error
    return value if value is None or value > 0 else None


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
