"""Where vLLM keeps pages that outlive it. Read from releases 0.20.2, 0.27.1 and 0.32.0."""

from collections.abc import Iterator, Mapping
from typing import Any

from reproducer.documents.base import parse_json, shown
from reproducer.documents.lock import Launch
from reproducer.engines.interface import StoreFolder
from reproducer.engines.persistent import refuse, whole_names
from reproducer.errors import InvalidDocumentError

_TRANSFER = "kv-transfer-config"
_ENCODER = "ec-transfer-config"
_SIZE = "kv-offloading-size"
_BACKEND = "kv-offloading-backend"
_SIMPLE = "VLLM_USE_SIMPLE_KV_OFFLOAD"
OPTIONS = frozenset({_TRANSFER, _ENCODER, _SIZE, _BACKEND, "config"})
_LARGEST = 1 << 20
_BREAKS = '"\\'  # the path stands in JSON

_OUTSIDE = "it keeps pages in a service outside the engine, and penny does not know where"
_PEERS = "it takes pages from other servers, and penny does not know what computed them"
_UNCLEAR = "which connector the engine makes of it is not plain"
_UNKNOWN = "penny does not know where it keeps pages"
_CODE = "it loads code that is not vLLM's own, and penny does not know where that keeps pages"

# Connectors that write files: the key of their folder, and what it is.
_FOLDERS = ("ExampleConnector", "ExampleHiddenStatesConnector", "SharedStorageConnector")
_MEMORY = ("DecodeBenchConnector", "HiSparseConnector")
_SERVICES = (
    "FlexKVConnectorV1",
    "HF3FSKVConnector",
    "LMCacheConnectorV1",
    "LMCacheMPConnector",
    "MooncakeStoreConnector",
)
_TRANSPORTS = (
    "MoRIIOConnector",
    "MooncakeConnector",
    "NixlConnector",
    "NixlPullConnector",
    "NixlPushConnector",
    "P2pNcclConnector",
)


def persistent_store(launch: Launch) -> tuple[StoreFolder, ...]:
    """The folders in which vLLM keeps pages, or what they are computed from, beyond its own end.

    Raises:
        InvalidDocumentError: a store whose place penny does not know, or a setting that cannot be read.
    """
    whole_names(launch, OPTIONS)
    if launch.arguments.get("config", False) is not False:
        raise InvalidDocumentError(
            "reads arguments from a file that the lock does not pin",
            where="launch.arguments.config",
            todo="write the arguments themselves",
        )
    return (*_pages(launch), *_encoder(launch))


def _pages(launch: Launch) -> Iterator[StoreFolder]:
    where = f"launch.arguments.{_TRANSFER}"
    config = _table(launch, _TRANSFER)
    if launch.arguments.get(_SIZE, False) is not False:
        if (backend := launch.arguments.get(_BACKEND, "native")) != "native":
            refuse(f"offloading to {shown(backend)}", f"launch.arguments.{_BACKEND}", _OUTSIDE, "use native")
        # vLLM puts a connector of its own in the place of the one that is named, and keeps its options.
        if (simple := launch.environment.get(_SIMPLE, "0")) not in ("0", "1"):  # the engine takes `00` for 0, too
            refuse(
                f"offloading with {_SIMPLE} {shown(simple)}", f"launch.environment.{_SIMPLE}", _UNCLEAR, "write 0 or 1"
            )
        config = {**config, "kv_connector": "SimpleCPUOffloadConnector" if simple == "1" else "OffloadingConnector"}
    yield from _connector(config, where)


def _connector(config: Mapping[str, Any], where: str) -> Iterator[StoreFolder]:
    """The folders of one connector and of those inside it."""
    name = config.get("kv_connector")
    if name is None:
        return
    if config.get("kv_connector_module_path") is not None:
        refuse(f"the connector {shown(name)}", f"{where}, key kv_connector_module_path", _CODE)
    options = _inner(config, "kv_connector_extra_config", where)
    key = f"{where}, key kv_connector_extra_config"
    if name in _FOLDERS:
        yield _folder(name, options, "shared_storage_path", key)
    elif name == "OffloadingConnector":
        yield from _offloading(options, key)
    elif name == "SimpleCPUOffloadConnector":
        if options.get("kv_offload_backend", "cpu") != "cpu":
            yield _folder(name, options, "disk_path", key, is_file=True)
    elif name == "MultiConnector":
        for index, child in enumerate(_list(options, "connectors", key)):
            yield from _connector(child, f"{key}.connectors[{index}]")
    elif name not in _MEMORY:
        why = _OUTSIDE if name in _SERVICES else _PEERS if name in _TRANSPORTS else _UNKNOWN
        refuse(f"the connector {shown(name)}", f"{where}, key kv_connector", why)


def _offloading(options: Mapping[str, Any], where: str) -> Iterator[StoreFolder]:
    """The tiers below the memory of the host."""
    spec = options.get("spec_name", "CPUOffloadingSpec")
    if spec == "CPUOffloadingSpec":
        return
    if spec != "TieringOffloadingSpec":
        refuse(f"offloading as {shown(spec)} says", f"{where}.spec_name", _CODE)
    for index, tier in enumerate(_list(options, "secondary_tiers", where)):
        key = f"{where}.secondary_tiers[{index}]"
        kind = tier.get("type")
        if kind == "fs":
            yield _folder("the tier fs", tier, "root_dir", key)
        elif kind != "example":  # which keeps nothing but names, in memory
            why = {"kvcr": _OUTSIDE, "obj": _OUTSIDE, "p2p": _PEERS}.get(str(kind), _UNKNOWN)
            refuse(f"the tier {shown(kind)}", f"{key}.type", why, "use fs")


def _encoder(launch: Launch) -> Iterator[StoreFolder]:
    """Stored outputs of the encoders: pages of images are computed from them."""
    where = f"launch.arguments.{_ENCODER}"
    config = _table(launch, _ENCODER)
    name = config.get("ec_connector")
    if name is None:
        return
    if config.get("ec_connector_module_path") is not None:
        refuse(f"the connector {shown(name)}", f"{where}, key ec_connector_module_path", _CODE)
    if name != "ECExampleConnector":
        refuse(f"the connector {shown(name)}", f"{where}, key ec_connector", _UNKNOWN)
    options = _inner(config, "ec_connector_extra_config", where)
    yield _folder(name, options, "shared_storage_path", f"{where}, key ec_connector_extra_config")


def _folder(store: str, options: Mapping[str, Any], key: str, where: str, *, is_file: bool = False) -> StoreFolder:
    """The folder that one key names; None where it is left to the engine."""
    value = options.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidDocumentError(f"{shown(value)} is no text", where=f"{where}.{key}")
    return StoreFolder(store, f"{where}.{key}", value, is_file=is_file, breaks=_BREAKS)


def _table(launch: Launch, flag: str) -> Mapping[str, Any]:
    """An argument that is a JSON object; empty where it is not given."""
    where = f"launch.arguments.{flag}"
    value = launch.arguments.get(flag, False)
    if value is False:
        return {}
    if not isinstance(value, str):
        raise InvalidDocumentError(f"{shown(value)} is no JSON object", where=where)
    return _object(parse_json(value, where=where, limit=_LARGEST), where)


def _inner(config: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = config.get(key)
    return {} if value is None else _object(value, f"{where}, key {key}")


def _list(options: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    value = options.get(key, [])
    if not isinstance(value, list):
        raise InvalidDocumentError(f"{shown(value)} is no list", where=f"{where}.{key}")
    return [_object(each, f"{where}.{key}[{index}]") for index, each in enumerate(value)]


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidDocumentError(f"{shown(value)} is no JSON object", where=where)
    return value
