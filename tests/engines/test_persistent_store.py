"""Persistent stores lie in the namespace: which folder an engine would use, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.base import FileReference
from reproducer.documents.lock import Launch
from reproducer.engines import sglang_store, stores_of, vllm_store
from reproducer.engines.persistent import placed
from reproducer.errors import InvalidDocumentError

NIXL = "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"
FILE = "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"
PLUGIN = "SGLANG_HICACHE_NIXL_BACKEND_PLUGIN"
BACKEND = "hicache-storage-backend"
EXTRA = "hicache-storage-backend-extra-config"
TRANSFER = "kv-transfer-config"

DATA = Path(__file__).parent.parent / "data" / "arguments"
RELEASES = sorted(path.stem for path in DATA.glob("*.json"))
WATCHED = {"sglang": sglang_store.OPTIONS, "vllm": vllm_store.OPTIONS}
SOUNDS_LIKE_A_STORE = re.compile(
    r"lmcache|flexkv|linker|cache-backend|storage|global-cache|persist|disk|offload|connector|transfer"
)
# Arguments that sound like a store of pages and turn none on.
NO_STORE = {
    "weights, or memory that ends with the engine": """
        cpu-offload-gb cpu-offload-params offload-backend offload-group-size offload-mode offload-num-in-group
        offload-params offload-prefetch-step ple-offload-backend ple-offload-dir ple-offload-embedding
        remote-instance-weight-loader-start-seed-via-transfer-engine sleep-mode-offload-cudagraph
        weight-transfer-config
    """,
    "how a store or a transport works that another argument turns on": """
        disaggregation-decode-enable-offload-kvcache disaggregation-transfer-backend enable-linker-mla-dedup
        encoder-transfer-backend flexkv-config-file
        hicache-storage-prefetch-policy hicache-storage-prefetch-retry-max-attempts
        hicache-storage-prefetch-retry-poll-interval lmcache-config-file mm-global-cache-backend
        unified-cache-external-linker-backend unified-cache-external-linker-config
    """,
    "no pages": "disable-outlines-disk-cache enable-tower-connector-lora file-storage-path",
}


def launch(arguments: dict[str, Any], environment: dict[str, str] | None = None) -> Launch:
    """A launch with these arguments; a table becomes JSON."""
    texts = {flag: json.dumps(value) if isinstance(value, dict) else value for flag, value in arguments.items()}
    data = {"module": "m", "arguments": texts, "environment": environment or {}, "effective": {}, "readiness": {}}
    return Launch.model_validate_json(json.dumps(data))


def connector(name: str, **options: Any) -> dict[str, Any]:
    """A connector of vLLM with its options."""
    return {"kv_connector": name, "kv_role": "kv_both", "kv_connector_extra_config": options}


def tiers(*entries: dict[str, Any]) -> dict[str, Any]:
    """VLLM's offloading connector with these tiers below the memory of the host."""
    return connector("OffloadingConnector", spec_name="TieringOffloadingSpec", secondary_tiers=list(entries))


def refusal(engine: str, arguments: dict[str, Any], environment: dict[str, str] | None = None) -> str:
    """The error with which a launch is refused."""
    with pytest.raises(InvalidDocumentError) as caught:
        placed(launch(arguments, environment), stores_of(engine))
    return str(caught.value)


@pytest.mark.parametrize(("backend", "variable"), [("nixl", NIXL), ("file", FILE)])
def test_sglang_folder_is_filled_in(backend: str, variable: str) -> None:
    """A storage whose folder nobody names gets the namespace by its variable; the rest stays."""
    found = placed(launch({BACKEND: backend}, {"B": "1", "Z": "2"}), stores_of("sglang"))
    assert found.launch.environment == {"B": "1", variable: "{namespace}", "Z": "2"}
    assert list(found.launch.environment) == sorted(found.launch.environment)
    assert found.launch.arguments == {BACKEND: backend}
    assert found.below == ("",)


@pytest.mark.parametrize(("backend", "variable"), [("nixl", NIXL), ("file", FILE)])
@pytest.mark.parametrize(
    ("folder", "below"), [("{namespace}", ""), ("{namespace}/a", "a"), ("{namespace}/a b/c", "a b/c")]
)
def test_sglang_folder_in_the_namespace_stays(backend: str, variable: str, folder: str, below: str) -> None:
    """A folder that is the namespace or lies in it is left as it is."""
    asked = launch({BACKEND: backend}, {variable: folder})
    found = placed(asked, stores_of("sglang"))
    assert (found.launch, found.below) == (asked, (below,))


@pytest.mark.parametrize(("backend", "variable"), [("nixl", NIXL), ("file", FILE)])
@pytest.mark.parametrize(
    "folder",
    [
        "",
        ".",
        "pages",
        "tmp/hicache",
        "/data/hicache",
        "{checkpoint.target}",
        "x{namespace}",
        "x/{namespace}",
        "{namespace}x",
        "{namespace}/..",
        "{namespace}/a/../../b",
        "{namespace}/./a",
        "{namespace}//a",
        "{namespace}/",
        "{namespace}/a\n",
        "{namespace}/a/{namespace}",
        "{namespace}/a{namespace}",
        "{NAMESPACE}",
    ],
)
def test_sglang_folder_elsewhere_is_refused(backend: str, variable: str, folder: str) -> None:
    """Any other text of the variable is refused by its key, with what to write."""
    said = refusal("sglang", {BACKEND: backend}, {variable: folder})
    assert said.startswith(f"launch.environment.{variable}: ")
    assert "outside the namespace" in said
    assert "Write {namespace}, or {namespace}/NAME for a folder in it" in said
    assert "\n" not in said


def test_nixl_keeps_pages_in_several_folders() -> None:
    """Newer releases split the variable at commas: each folder counts."""
    found = placed(launch({BACKEND: "nixl"}, {NIXL: "{namespace}/a, {namespace}/b"}), stores_of("sglang"))
    assert found.below == ("a", "b")
    assert found.breaks == ","
    assert "outside the namespace" in refusal("sglang", {BACKEND: "nixl"}, {NIXL: "{namespace}/a,/data/b"})
    assert "outside the namespace" in refusal("sglang", {BACKEND: "nixl"}, {NIXL: "{namespace},"})
    assert placed(launch({BACKEND: "file"}, {FILE: "{namespace}/a,b"}), stores_of("sglang")).below == ("a,b",)


def test_file_storage_reads_a_folder_from_the_extra_configuration() -> None:
    """The key that newer releases read must lie in the namespace too, although the variable counts before it."""
    arguments = {BACKEND: "file", EXTRA: {"file_storage_path": "/data"}}
    assert refusal("sglang", arguments).startswith(f"launch.arguments.{EXTRA}, key file_storage_path: ")
    arguments[EXTRA] = {"file_storage_path": "{namespace}/x"}
    assert placed(launch(arguments), stores_of("sglang")).below == ("", "x")


def test_placeholder_spelt_in_json_escapes_is_no_placeholder() -> None:
    """What the engine reads after the placeholders are filled counts: nothing fills one behind escapes."""
    text = '{"file_storage_path": "\\u007bnamespace\\u007d"}'
    assert json.loads(text) == {"file_storage_path": "{namespace}"}
    assert "outside the namespace" in refusal("sglang", {BACKEND: "file", EXTRA: text})


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ({}, {PLUGIN: "OBJ"}),
        ({}, {PLUGIN: "obj"}),
        ({}, {PLUGIN: "MINE"}),
        ({}, {"AWS_DEFAULT_BUCKET": "b"}),
        ({EXTRA: {"bucket": "b"}}, {}),
        ({EXTRA: {"plugin": {"obj": {"active": True}, "posix": {"active": True}}}}, {PLUGIN: "POSIX"}),
        ({EXTRA: {"plugin": {"posix": {}}}}, {}),
        ({EXTRA: {"plugin": ["posix"]}}, {}),
    ],
)
def test_nixl_without_files_is_refused(arguments: dict[str, Any], environment: dict[str, str]) -> None:
    """Plugins that keep pages in an object store, or that penny does not know, have no folder."""
    said = refusal("sglang", {BACKEND: "nixl", **arguments}, {NIXL: "{namespace}", **environment})
    assert "writes no files" in said


@pytest.mark.parametrize(
    ("extra", "environment"),
    [
        ({"plugin": {"posix": {"active": "true"}}}, {}),
        ({"use_uring": "true"}, {PLUGIN: "POSIX"}),
        ({}, {PLUGIN: "GDS_MT", "AWS_DEFAULT_BUCKET": "b"}),
    ],
)
def test_nixl_with_files_is_taken(extra: dict[str, Any], environment: dict[str, str]) -> None:
    """Both forms of the configuration, with plugins that write files."""
    found = placed(launch({BACKEND: "nixl", EXTRA: extra}, environment), stores_of("sglang"))
    assert found.launch.environment[NIXL] == "{namespace}"


@pytest.mark.parametrize("extra", ["@storage.toml", "{", "[]", '{"a": 1, "a": 2}', "1"])
@pytest.mark.parametrize("backend", ["nixl", "file"])
def test_sglang_extra_configuration_that_cannot_be_read(extra: str, backend: str) -> None:
    """What penny cannot read could name another folder."""
    assert refusal("sglang", {BACKEND: backend, EXTRA: extra}).startswith(f"launch.arguments.{EXTRA}: ")


@pytest.mark.parametrize("backend", ["mooncake", "hf3fs", "aibrix", "eic", "simm", "dynamic", "NIXL", "", True, 1])
def test_sglang_storage_elsewhere_is_refused(backend: Any) -> None:
    """Services outside the engine, and kinds that penny does not know, are refused with what can be used instead."""
    said = refusal("sglang", {BACKEND: backend}, {NIXL: "{namespace}", FILE: "{namespace}"})
    assert said.startswith(f"launch.arguments.{BACKEND}: ")
    assert "cannot be kept in a namespace" in said
    assert said.endswith("Use nixl or file")


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("enable-lmcache", True),
        ("enable-flexkv", True),
        ("enable-mm-global-cache", True),
        ("enable-unified-cache-external-linker", True),
        ("radix-cache-backend", "mine"),
    ],
)
def test_sglang_other_stores_are_refused(flag: str, value: Any) -> None:
    """Stores that are no backend of the hierarchical cache; false leaves them out."""
    said = refusal("sglang", {BACKEND: "nixl", flag: value})
    assert said.startswith(f"launch.arguments.{flag}: ")
    assert placed(launch({flag: False}), stores_of("sglang")).below == ()


def test_sglang_pages_of_other_servers_are_not_stored() -> None:
    """Half a server stores what its other half computed; without a storage nothing stays."""
    said = refusal("sglang", {BACKEND: "nixl", "disaggregation-mode": "decode"})
    assert said.startswith("launch.arguments.disaggregation-mode: ")
    assert "other servers" in said
    assert placed(launch({"disaggregation-mode": "decode"}), stores_of("sglang")).below == ()
    assert placed(launch({BACKEND: "nixl", "disaggregation-mode": "null"}), stores_of("sglang")).below == ("",)


@pytest.mark.parametrize(
    ("engine", "flag", "full"),
    [
        ("sglang", "enable-lm", "enable-lmcache"),
        ("sglang", "hicache-storage-backend-extra", EXTRA),
        ("vllm", "kv-transfer", TRANSFER),
        ("vllm", "kv-offloading", "kv-offloading-backend or --kv-offloading-size"),
    ],
)
def test_short_names_are_refused(engine: str, flag: str, full: str) -> None:
    """The engines' parsers complete a flag that is cut short, so that one would pass every check unseen."""
    said = refusal(engine, {flag: "x"})
    assert said == f"launch.arguments.{flag}: --{flag} is short for --{full}. Write the whole name"


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_no_store_is_no_matter(engine: str) -> None:
    """A launch without persistent pages is left as it is, wherever an unused variable points."""
    asked = launch({"dtype": "auto", "seed": 0}, {NIXL: "nowhere"})
    assert placed(asked, stores_of(engine)) == (asked, (), "")


@pytest.mark.parametrize(
    ("arguments", "below"),
    [
        ({TRANSFER: connector("ExampleConnector", shared_storage_path="{namespace}")}, ("",)),
        ({TRANSFER: connector("SharedStorageConnector", shared_storage_path="{namespace}/x")}, ("x",)),
        ({TRANSFER: connector("ExampleHiddenStatesConnector", shared_storage_path="{namespace}/x")}, ("x",)),
        ({TRANSFER: tiers({"type": "fs", "root_dir": "{namespace}"}, {"type": "example"})}, ("",)),
        ({TRANSFER: connector("OffloadingConnector", cpu_bytes_to_use=1)}, ()),
        ({TRANSFER: connector("SimpleCPUOffloadConnector", disk_path="/ignored")}, ()),
        (
            {
                TRANSFER: connector(
                    "SimpleCPUOffloadConnector", kv_offload_backend="disk", disk_path="{namespace}/pages.bin"
                )
            },
            ("pages.bin",),
        ),
        (
            {
                TRANSFER: connector(
                    "MultiConnector",
                    connectors=[
                        connector("ExampleConnector", shared_storage_path="{namespace}/a"),
                        tiers({"type": "fs", "root_dir": "{namespace}/b"}),
                    ],
                )
            },
            ("a", "b"),
        ),
        ({"kv-offloading-size": 4}, ()),
        ({"kv-offloading-size": 4, "kv-offloading-backend": "native"}, ()),
        ({TRANSFER: {}}, ()),
        (
            {
                "ec-transfer-config": {
                    "ec_connector": "ECExampleConnector",
                    "ec_connector_extra_config": {"shared_storage_path": "{namespace}/images"},
                }
            },
            ("images",),
        ),
    ],
)
def test_vllm_stores_in_the_namespace(arguments: dict[str, Any], below: tuple[str, ...]) -> None:
    """Connectors that write files have each of their folders found; those that keep memory have none."""
    asked = launch(arguments)
    found = placed(asked, stores_of("vllm"))
    assert (found.launch, found.below) == (asked, below)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({TRANSFER: connector("ExampleConnector")}, "kv_connector_extra_config.shared_storage_path"),
        ({TRANSFER: connector("ExampleConnector", shared_storage_path="/tmp")}, "shared_storage_path"),  # noqa: S108
        ({TRANSFER: connector("ExampleConnector", shared_storage_path="{namespace}/../x")}, "shared_storage_path"),
        ({TRANSFER: connector("ExampleConnector", shared_storage_path=7)}, "shared_storage_path"),
        ({TRANSFER: tiers({"type": "fs"})}, "secondary_tiers[0].root_dir"),
        ({TRANSFER: tiers({"type": "example"}, {"type": "fs", "root_dir": "/data"})}, "secondary_tiers[1].root_dir"),
        (
            {TRANSFER: connector("SimpleCPUOffloadConnector", kv_offload_backend="disk", disk_path="{namespace}")},
            "kv_connector_extra_config.disk_path",
        ),
        (
            {TRANSFER: connector("MultiConnector", connectors=[connector("ExampleConnector")])},
            "connectors[0], key kv_connector_extra_config.shared_storage_path",
        ),
        ({"ec-transfer-config": {"ec_connector": "ECExampleConnector"}}, "shared_storage_path"),
        # An offloading size puts a connector in the place of the one that is named, and keeps the options.
        (
            {
                "kv-offloading-size": 4,
                TRANSFER: {"kv_connector_extra_config": tiers({"type": "fs"})["kv_connector_extra_config"]},
            },
            "secondary_tiers[0].root_dir",
        ),
    ],
)
def test_vllm_stores_elsewhere_are_refused(arguments: dict[str, Any], where: str) -> None:
    """A folder outside the namespace, or left to the engine's default, is refused by its key."""
    assert f"{where}: " in refusal("vllm", arguments)


def test_vllm_simple_offloading_takes_the_options() -> None:
    """With the variable, an offloading size means another connector, whose disk counts."""
    options = {"kv_connector_extra_config": {"kv_offload_backend": "disk", "disk_path": "/data/x"}}
    arguments: dict[str, Any] = {"kv-offloading-size": 4, TRANSFER: options}
    assert placed(launch(arguments), stores_of("vllm")).below == ()
    assert "disk_path: " in refusal("vllm", arguments, {"VLLM_USE_SIMPLE_KV_OFFLOAD": "1"})


@pytest.mark.parametrize("text", ["00", "+0", "-0", "0_0", " 0", "", "2", "true", "\N{ARABIC-INDIC DIGIT ZERO}"])
def test_vllm_offloading_switch_is_plain(text: str) -> None:
    """The engine takes any spelling of a number, so `00` would turn on the connector whose tiers nobody looked at."""
    tiers = {"spec_name": "TieringOffloadingSpec", "secondary_tiers": [{"type": "fs", "root_dir": "/data/x"}]}
    arguments: dict[str, Any] = {"kv-offloading-size": 4, TRANSFER: {"kv_connector_extra_config": tiers}}
    assert "write 0 or 1" in refusal("vllm", arguments, {"VLLM_USE_SIMPLE_KV_OFFLOAD": text}).lower()


def test_vllm_file_needs_a_name_in_the_namespace() -> None:
    """The engine appends to the name of a file, so that the namespace itself would name a file beside it."""
    options = connector("SimpleCPUOffloadConnector", kv_offload_backend="disk", disk_path="{namespace}")
    assert refusal("vllm", {TRANSFER: options}).endswith("Write {namespace}/NAME")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        *[
            ({TRANSFER: connector(name)}, "service outside the engine")
            for name in ("LMCacheConnectorV1", "LMCacheMPConnector", "MooncakeStoreConnector", "HF3FSKVConnector")
        ],
        *[
            ({TRANSFER: connector(name)}, "from other servers")
            for name in ("NixlConnector", "MooncakeConnector", "MoRIIOConnector", "P2pNcclConnector")
        ],
        ({TRANSFER: connector("Mine")}, "does not know where"),
        ({TRANSFER: {**connector("ExampleConnector"), "kv_connector_module_path": "mine"}}, "not vLLM's own"),
        ({TRANSFER: connector("OffloadingConnector", spec_name="Mine", spec_module_path="mine")}, "not vLLM's own"),
        ({TRANSFER: tiers({"type": "obj"})}, "service outside the engine"),
        ({TRANSFER: tiers({"type": "kvcr"})}, "service outside the engine"),
        ({TRANSFER: tiers({"type": "p2p"})}, "from other servers"),
        ({TRANSFER: tiers({"type": "Mine", "module_path": "mine"})}, "does not know where"),
        ({TRANSFER: connector("MultiConnector", connectors=[connector("NixlConnector")])}, "from other servers"),
        ({"kv-offloading-size": 4, "kv-offloading-backend": "lmcache"}, "service outside the engine"),
        ({"ec-transfer-config": {"ec_connector": "ECMooncakeConnector"}}, "does not know where"),
    ],
)
def test_vllm_unknown_stores_are_refused(arguments: dict[str, Any], reason: str) -> None:
    """What keeps pages where penny cannot look, or takes them from elsewhere, is refused with the reason."""
    said = refusal("vllm", arguments)
    assert "cannot be kept in a namespace" in said
    assert reason in said


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({TRANSFER: "{"}, "is not JSON"),
        ({TRANSFER: "null"}, "is no JSON object"),
        ({TRANSFER: True}, "is no JSON object"),
        ({TRANSFER: {"kv_connector": "ExampleConnector", "kv_connector_extra_config": []}}, "is no JSON object"),
        ({TRANSFER: connector("MultiConnector", connectors={})}, "is no list"),
        ({TRANSFER: connector("MultiConnector", connectors=["a"])}, "is no JSON object"),
        ({"config": "serve.yaml"}, "file that the lock does not pin"),
    ],
)
def test_vllm_settings_that_cannot_be_read(arguments: dict[str, Any], what: str) -> None:
    """What penny cannot read could turn on a store."""
    assert what in refusal("vllm", arguments)


@pytest.mark.parametrize("release", RELEASES)
def test_every_store_of_a_release_is_known(release: str) -> None:
    """A release's argument that sounds like a store is watched, or somebody has looked at what it does."""
    schema = json.loads((DATA / f"{release}.json").read_text())
    watched = WATCHED[schema["engine"]]
    known = watched | {name for names in NO_STORE.values() for name in names.split()}
    names = {each["name"] for each in schema["arguments"]}
    assert {name for name in names if SOUNDS_LIKE_A_STORE.search(name)} - known == set()
    assert watched & {alias for each in schema["arguments"] for alias in each.get("aliases", ())} == set()
    assert not [each["name"] for each in schema["arguments"] if each["name"] in watched and each.get("aliases")]


def _in_a_file(text: str) -> tuple[Launch, Any]:
    """A launch that reads its storage's configuration from a file of the lock, and what reads that."""
    reference = FileReference(path="runtime/nixl.json", sha256="0" * 64, size=len(text))
    asked = launch({BACKEND: "nixl", EXTRA: "@{file.nixl}"}).model_copy(update={"files": {"nixl": reference}})
    return asked, lambda file: text.encode() if file == reference else b""


def test_configuration_in_a_file_of_the_lock() -> None:
    """What a pinned file says is judged as if it stood in the launch, and the launch keeps naming the file."""
    asked, read = _in_a_file('{"plugin": {"posix": {"active": true}}}')
    found = placed(asked, stores_of("sglang"), read=read)
    assert found.below == ("",)
    assert found.launch.arguments[EXTRA] == "@{file.nixl}"
    assert found.launch.environment == {NIXL: "{namespace}"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"plugin": {"obj": {"active": true}}}', "it writes no files"),
        ("[1]", "is no JSON object"),
        ("plugin: posix", "is not JSON"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_configuration_in_a_file_that_no_namespace_holds(text: str, said: str) -> None:
    """A file is no way around what is refused in the launch itself."""
    asked, _ = _in_a_file("x")
    with pytest.raises(InvalidDocumentError, match=said):
        placed(asked, stores_of("sglang"), read=lambda _: text.encode("utf-8", "surrogateescape"))


def test_file_that_names_the_placeholder_is_not_filled_in() -> None:
    """The engine reads a file as it is: a placeholder in it is a folder of that name, outside the namespace."""
    asked, _ = _in_a_file("x")
    asked = asked.model_copy(update={"arguments": {BACKEND: "file", EXTRA: "@{file.nixl}"}})
    text = b'{"file_storage_path": "{namespace}/pages"}'
    with pytest.raises(InvalidDocumentError, match="would keep pages in"):
        placed(asked, stores_of("sglang"), read=lambda _: text)


def test_file_that_nobody_reads_or_pins_is_refused() -> None:
    """Without the file's bytes, and for a file that is none of the lock's, nothing is believed."""
    asked, read = _in_a_file("{}")
    with pytest.raises(InvalidDocumentError, match="a file that the lock does not pin"):
        placed(asked, stores_of("sglang"))
    other = asked.model_copy(update={"arguments": {BACKEND: "nixl", EXTRA: "@other.json"}})
    with pytest.raises(InvalidDocumentError, match="a file that the lock does not pin"):
        placed(other, stores_of("sglang"), read=read)
