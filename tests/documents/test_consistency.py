"""What must hold between the keys of a lock or manifest."""

from pathlib import Path

import pytest

from reproducer.documents.lock import Lock
from reproducer.documents.manifest import Manifest
from reproducer.documents.toml import parse_toml
from reproducer.errors import InvalidDocumentError

OLD = Path(__file__).parents[1] / "data" / "documents"
LOCK = (OLD / "lock-1.toml").read_text("utf-8")
MANIFEST = (OLD / "manifest-1.toml").read_text("utf-8")

CASES = [
    (
        'component = "engine"',
        'component = "engin"',
        "key engine.component: 'engin' is not there, did you mean 'engine'?",
    ),
    ('name = "kernels"', 'name = "engine"', "key components[1].name: 'engine' stands twice"),
    ('name = "build"', 'name = "runtime"', "key environments[1].name: 'runtime' stands twice"),
    ('name = "runtime"', 'name = "server"', "no environment is named 'runtime'"),
    ('build_environment = "build"', 'build_environment = "bulid"', "key components[0].build_environment: 'bulid'"),
    ('environment = "build"', 'environment = "x"', "key components[0].build_environment"),
    ('role = "target"', 'role = "draft"', "no checkpoint has the role 'target'"),
    ("page-size = 16", "page-size = false", "key launch.arguments.page-size: false says nothing: leave it out"),
    ("page-size = 16", 'host = "0.0.0.0"', "key launch.arguments.host: may not stand here: penny chooses it"),
    ("page-size = 16", "port = 30000", "key launch.arguments.port: may not stand here"),
    ("{checkpoint.target}", "/models/one", "names an absolute path"),
    ("{checkpoint.target}", "~/models/one", "names an absolute path"),
    ("{checkpoint.target}", "{checkpoint.draft}", "nothing fills the placeholder {checkpoint.draft}"),
    ("{namespace}", "{namspace}", "did you mean 'namespace'?"),
    ("{namespace}", "/var/kv", "key launch.environment.KV: '/var/kv' names an absolute path"),
    ('"{source}"', '"{sauce}"', "the placeholder {source} is missing"),
    ('"--dtype"', '"{dtype}"', "nothing fills the placeholder {dtype}"),
    ("decode.single/1", "decode.singel/1", "no measure 'decode.singel/1' is known"),
    ("restore.restart/1", "decode.single/1", "gives no value 'same_output'"),
    ("prompt_tokens = 64", "prompt_token = 64", "takes no parameter 'prompt_token'"),
    ("prompt_tokens = 64", "prompt_tokens = 0", "must be a whole number from 1"),
    ('value = "decode_rate"', 'value = "decod_rate"', "gives no value 'decod_rate'. Did you mean 'decode_rate'?"),
    ('unit = "tok/s"', 'unit = "s"', "is in tok/s, the threshold in 's'"),
    ("0002-second", "0001-first", "key components[0].patches[1].path"),
    ('path = "kernels/__init__.py"', 'path = "pyproject.toml"', "key components[1].source.files[1].path"),
]


@pytest.mark.parametrize(("old", "new", "said"), CASES, ids=[new for _, new, _ in CASES])
def test_contradictions_in_a_lock(old: str, new: str, said: str) -> None:
    """A contradiction names file, line and key, and what is near where something is."""
    assert old in LOCK
    text = LOCK.replace(old, new, 1)
    with pytest.raises(InvalidDocumentError) as caught:
        Lock.from_data(parse_toml(text, where="x.toml"), where="x.toml", source=text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("x.toml: line ")


def test_every_contradiction_is_named() -> None:
    """All faults come at once, not one at a time."""
    text = LOCK.replace('component = "engine"', 'component = "x"').replace("page-size = 16", "page-size = false")
    with pytest.raises(InvalidDocumentError) as caught:
        Lock.from_data(parse_toml(text, where="x.toml"), where="x.toml", source=text)
    assert "engine.component" in str(caught.value)
    assert "launch.arguments.page-size" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('component = "sglang"', 'component = "sglan"', "did you mean 'sglang'?"),
        ('environment = "conversion"', 'environment = "convert"', "key checkpoints[0].conversion.environment"),
        ('device = "cpu"', 'device = "cpu"\nport = 1', "key launch.arguments.port"),
        ("{namespace}", "{namespaces}", "nothing fills the placeholder {namespaces}"),
        ("needle.short/1", "needle.long/1", "no measure 'needle.long/1' is known"),
    ],
)
def test_contradictions_in_a_manifest(old: str, new: str, said: str) -> None:
    """The same holds for a manifest."""
    assert old in MANIFEST
    text = MANIFEST.replace(old, new, 1)
    with pytest.raises(InvalidDocumentError) as caught:
        Manifest.from_data(parse_toml(text, where="m.toml"), where="m.toml", source=text)
    assert said in str(caught.value)


@pytest.mark.parametrize("value", ['{"use_uring": "true"}', "org/model", "a=b/c", "tcp://{namespace}", "1/2"])
def test_braces_and_slashes_that_are_no_placeholders_or_paths(value: str) -> None:
    """JSON, names with slashes and URLs are legitimate arguments."""
    data = parse_toml(LOCK, where="x.toml")
    data["launch"]["arguments"]["free"] = value
    assert Lock.from_data(data, where="x.toml").launch.arguments["free"] == value
