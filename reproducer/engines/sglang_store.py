"""Where SGLang keeps pages that outlive it. Read from releases 0.5.7, 0.5.10.post1, 0.5.17 and 0.5.23."""

from collections.abc import Mapping
from typing import Any

from reproducer.documents.base import parse_json, shown
from reproducer.documents.lock import Launch
from reproducer.engines.interface import StoreFolder
from reproducer.engines.persistent import refuse, whole_names
from reproducer.errors import InvalidDocumentError

_BACKEND = "hicache-storage-backend"
_EXTRA = "hicache-storage-backend-extra-config"
_LARGEST = 1 << 20
_FILE = "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"
_NIXL = "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"
_PLUGIN = "SGLANG_HICACHE_NIXL_BACKEND_PLUGIN"
_FILE_PLUGINS = frozenset({"3FS", "AUTO", "GDS", "GDS_MT", "POSIX"})
_OUTSIDE = "it keeps pages in a service outside the engine, and penny does not know where"
_EMBEDDINGS = "it shares what pages of images are computed from through a service outside the engine"
_PEERS = "pages that other servers computed would be stored as its own, and penny does not know what those run"
_REGISTERED = "code that is not SGLang's own registers it, and penny does not know where that keeps pages"

# Arguments that turn on a store of another kind, with the reason why penny cannot place it.
_OTHERS: Mapping[str, str] = {
    "enable-flexkv": _OUTSIDE,
    "enable-lmcache": _OUTSIDE,
    "enable-mm-global-cache": _EMBEDDINGS,
    "enable-unified-cache-external-linker": _OUTSIDE,
    "radix-cache-backend": _REGISTERED,
}
_MODE = "disaggregation-mode"
OPTIONS = frozenset({_BACKEND, _EXTRA, _MODE, *_OTHERS})


def persistent_store(launch: Launch) -> tuple[StoreFolder, ...]:
    """The folders in which SGLang keeps pages beyond its own end; none where hierarchical storage is off.

    Raises:
        InvalidDocumentError: a store whose place penny does not know, or a setting that cannot be read.
    """
    whole_names(launch, OPTIONS)
    for flag, why in _OTHERS.items():
        if launch.arguments.get(flag, False) is not False:
            refuse(f"--{flag}", f"launch.arguments.{flag}", why, "leave it out")
    backend = launch.arguments.get(_BACKEND, False)
    if backend is False:
        return ()
    if backend not in ("file", "nixl"):
        refuse(f"storage of the kind {shown(backend)}", f"launch.arguments.{_BACKEND}", _OUTSIDE, "use nixl or file")
    if (mode := launch.arguments.get(_MODE, "null")) not in ("null", False):
        refuse(f"storage of a server with the part {shown(mode)}", f"launch.arguments.{_MODE}", _PEERS, "leave one out")
    return _file(launch) if backend == "file" else _nixl(launch)


def _file(launch: Launch) -> tuple[StoreFolder, ...]:
    """One folder; the variable counts before the extra configuration, which later releases read too."""
    found = [StoreFolder("file storage", f"launch.environment.{_FILE}", launch.environment.get(_FILE), _FILE)]
    extra = _extra(launch)
    if "file_storage_path" in extra:
        where = f"launch.arguments.{_EXTRA}, key file_storage_path"
        found.append(StoreFolder("file storage", where, _text(extra["file_storage_path"], where), breaks='"\\'))
    return tuple(found)


def _nixl(launch: Launch) -> tuple[StoreFolder, ...]:
    """One folder or several between commas, for the plugins that write files."""
    extra = _extra(launch)
    plugin, where = launch.environment.get(_PLUGIN, "auto"), f"launch.environment.{_PLUGIN}"
    if "plugin" in extra:
        plugin, where = _active(extra["plugin"]), f"launch.arguments.{_EXTRA}, key plugin"
    objects = "AWS_DEFAULT_BUCKET" in launch.environment or "bucket" in extra
    if plugin.upper() not in _FILE_PLUGINS or (plugin.upper() == "AUTO" and objects):
        refuse(f"NIXL with the plugin {shown(plugin)}", where, "it writes no files", "use POSIX")
    where = f"launch.environment.{_NIXL}"
    text = launch.environment.get(_NIXL)
    if text is None:
        return (StoreFolder("NIXL storage", where, None, _NIXL, breaks=","),)
    return tuple(StoreFolder("NIXL storage", where, each.strip(" "), breaks=",") for each in text.split(","))


def _active(plugins: Any) -> str:
    """The plugin that SGLang takes of a table of plugins: the first active one."""
    for name, options in plugins.items() if isinstance(plugins, dict) else ():
        if isinstance(options, dict) and options.get("active", False) in (True, "true", "True"):
            return str(name)
    return "none"


def _extra(launch: Launch) -> Mapping[str, Any]:
    """The extra configuration of the storage; empty where there is none."""
    where = f"launch.arguments.{_EXTRA}"
    value = launch.arguments.get(_EXTRA, False)
    if value is False or value == "":
        return {}
    if isinstance(value, str) and value.startswith("@"):
        raise InvalidDocumentError(
            "reads the storage's configuration from a file that the lock does not pin",
            where=where,
            todo="write the JSON itself",
        )
    table = parse_json(_text(value, where), where=where, limit=_LARGEST)
    if not isinstance(table, dict):
        raise InvalidDocumentError("is no JSON object", where=where)
    return table


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidDocumentError(f"{shown(value)} is no text", where=where)
    return value
