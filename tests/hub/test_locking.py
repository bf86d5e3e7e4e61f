"""Locking checkpoints of a hub: digests without weights, names that moved, what else the engine would open (R3, R4)."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reproducer.difference.diff import diff
from reproducer.documents.lock import Checkpoint
from reproducer.documents.opened import OpenedLock
from reproducer.errors import DriftError, InvalidDocumentError, NotCheckedError, UnsafeInputError
from reproducer.fetch import fetch
from reproducer.fetch.indexes import Indexes
from reproducer.identity.namespace import derive
from reproducer.locking import Locked
from reproducer.progress import Silent
from reproducer.store import Store
from tests.hub.conftest import CONFIG, FILES, MORE, NAME, WEIGHTS, Notes
from tests.hub.server import HubServer, blob_id
from tests.locking.conftest import Project, filled, new_project, serving

__all__ = ["serving"]

OLD = """[[checkpoints]]
name = "model"
role = "target"
source = { kind = "wheel-member", project = "tiny-model", version = "==1.0", member = "tiny_model/model.bin" }

[checkpoints.conversion]
script = "runtime/convert.py"
arguments = ["{source}", "{output}"]
environment = "build"
"""
NEW = """[[checkpoints]]
name = "model"
role = "target"
source = { kind = "hub", repository = "some/model" }
trust_remote_code = false
"""
OTHER = """
[[checkpoints]]
name = "other"
role = "ROLE"
source = { kind = "hub", repository = "REPOSITORY" }
"""


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory, serving: Any) -> Project:
    """A project with an index; its store keeps what is built for all tests."""
    folder = tmp_path_factory.mktemp("hub-locking")
    index = filled(serving(folder / "index"))
    return new_project(folder / "project", index, Store(folder / "store"))


@pytest.fixture
def project(tmp_path: Path, built_once: Project, hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose target lies on the local hub, not locked yet."""
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    made = new_project(tmp_path / "project", built_once.index, built_once.store)
    made.edit(OLD, NEW)
    return made


def target_of(locked: Locked) -> Checkpoint:
    """The target of a lock."""
    return locked.document.target


def opened(project: Project) -> OpenedLock:
    """The lock on disk."""
    from reproducer.documents.opened import open_lock

    return open_lock(project.path)


def test_every_file_is_locked_and_no_weight_is_transferred(project: Project, hub: HubServer) -> None:
    """Sizes, sha256 and git object names of every file stand in the lock, and the hub sent no weight."""
    locked = project.written()
    target = target_of(locked)
    assert target.source.model_dump() == {
        "kind": "hub",
        "repository": NAME,
        "asked": hashlib.sha256(b"main").hexdigest(),
        "revision": hub.repositories[NAME].refs["main"],
    }
    assert {file.path: (file.sha256, file.size) for file in target.listed} == {
        path: (hashlib.sha256(data).hexdigest(), len(data)) for path, data in FILES.items()
    }
    blobs = {file.path: file.blob for file in target.listed}
    assert blobs["config.json"] == blob_id(CONFIG)
    assert blobs["model-00001-of-00002.safetensors"] is None
    assert (hub.received(WEIGHTS), hub.received(MORE)) == (0, 0)
    assert sum(hub.sent.values()) < 10_000
    assert hub.asked("/tree/") == 3  # pages of three entries
    assert locked.document.launch.effective["dtype"] == "float16"
    assert locked.document.launch.effective["context_length"] == 2048


def test_locking_again_changes_nothing_and_fetches_nothing(project: Project, hub: HubServer, tmp_path: Path) -> None:
    """The same commit gives the same lock; small files that the lock has are not fetched again."""
    project.written()
    hub.forget()
    again = project.lock()
    assert again.reasons == ()
    assert hub.asked("/resolve/") == 0
    shutil.rmtree(cache := tmp_path / "cache")
    assert project.lock().reasons == ()
    assert cache.is_dir()  # what configs name is looked at again
    assert (hub.asked("config.json") > 0, hub.asked("README.md"), hub.asked("notes.txt")) == (True, 0, 0)


def test_a_name_that_moved(project: Project, hub: HubServer) -> None:
    """The lock stays where a branch moved on, `--check` says so, `--upgrade` takes it; another name is looked up."""
    first = project.written()
    kept = hub.repositories[NAME].refs["main"]
    now = hub.add(NAME, {**FILES, "README.md": b"# Another text\n"})
    notes = Notes()
    checked = project.lock(check=True, accepted=False, reporter=notes)
    assert checked.reasons == ()
    assert any(f"'main' is commit {now} now" in line for line in notes.lines)
    upgraded = project.lock(check=True, accepted=False, upgrade=frozenset({"model"}))
    assert any(reason.startswith("checkpoints[model].source.revision") for reason in upgraded.reasons)
    hub.repositories[NAME].refs["v2"] = now
    project.edit('repository = "some/model" }', 'repository = "some/model", revision = "v2" }')
    assert target_of(project.lock()).source.revision == now  # type: ignore[union-attr]
    project.edit('revision = "v2" }', 'revision = "main" }')
    assert target_of(project.lock()).source.revision == kept  # type: ignore[union-attr]
    project.edit(', revision = "main" }', " }")
    project.edit('repository = "some/model" }', f'repository = "some/model", revision = "{kept}" }}')
    held = project.lock()
    assert target_of(held).listed == target_of(first).listed
    assert target_of(held).source.model_dump(exclude_none=True) == {
        "kind": "hub",
        "repository": NAME,
        "revision": kept,
    }


def test_offline_keeps_an_exact_revision(project: Project, hub: HubServer) -> None:
    """Without a network a lock with a full commit is checked against itself, and a branch is a missing fact."""
    kept = hub.repositories[NAME].refs["main"]
    project.edit('repository = "some/model" }', f'repository = "some/model", revision = "{kept}" }}')
    project.written()
    hub.forget()
    assert project.lock(offline=True).reasons == ()
    assert hub.requests == []
    project.edit(f'revision = "{kept}"', 'revision = "main"')
    with pytest.raises(NotCheckedError, match=r"missing|branch"):
        project.lock(offline=True)
    project.written()
    assert project.lock(offline=True).reasons == ()


def test_a_full_commit_does_not_move(project: Project, hub: HubServer) -> None:
    """Once a full commit is locked without digests nobody asks the hub for it again, with a network or without."""
    kept = hub.repositories[NAME].refs["main"]
    project.edit(
        'repository = "some/model" }', f'repository = "some/model", revision = "{kept}", digests = "unknown" }}'
    )
    project.written()
    hub.forget()
    assert project.lock(check=True).reasons == ()
    assert hub.requests == []


def test_the_hub_may_not_answer_another_commit(project: Project, hub: HubServer) -> None:
    """A full commit that the hub answers with another one is an error."""
    asked = "1" * 40
    hub.repositories[NAME].refs[asked] = hub.repositories[NAME].refs["main"]
    project.edit('repository = "some/model" }', f'repository = "some/model", revision = "{asked}" }}')
    with pytest.raises(DriftError, match="answers another commit"):
        project.lock()


def test_a_revision_that_is_not_there_falls_back_to_nothing(project: Project) -> None:
    """R7 for models: a revision that nobody has is an error that names it."""
    project.edit('repository = "some/model" }', 'repository = "some/model", revision = "v9" }')
    with pytest.raises(DriftError, match=r"some/model has no revision 'v9'"):
        project.lock()


def test_ignored_files_are_not_locked(project: Project) -> None:
    """Patterns leave files and folders out."""
    project.edit('repository = "some/model" }', 'repository = "some/model", ignore = ["*.md", "nested/"] }')
    paths = {file.path for file in target_of(project.lock()).listed}
    assert paths == {path for path in FILES if path != "README.md" and not path.startswith("nested")}


@pytest.mark.parametrize("name", ["pytorch_model.bin", "a/model.PT", "x.pkl", "m.keras", "m.h5", "d.npy", "f.ckpt"])
def test_pickles_are_refused_unless_named(project: Project, hub: HubServer, name: str) -> None:
    """A file that runs code when it is loaded is refused by name; the manifest may allow it by name."""
    hub.add(NAME, {**FILES, name: b"\x80\x02}q\x00."})
    with pytest.raises(UnsafeInputError, match="can carry code"):
        project.lock()
    project.edit('repository = "some/model" }', f'repository = "some/model", pickles = ["{name}"] }}')
    target = target_of(project.lock())
    assert target.pickles == (name,)
    assert name in {file.path for file in target.listed}


def test_pickles_that_are_not_there_are_an_error(project: Project) -> None:
    """A name in `pickles` that no file has is a mistake in the manifest."""
    project.edit('repository = "some/model" }', 'repository = "some/model", pickles = ["gone.bin"] }')
    with pytest.raises(DriftError, match=r"gone\.bin"):
        project.lock()


def config_with(**keys: Any) -> bytes:
    """The config with further keys."""
    return json.dumps({**json.loads(CONFIG), **keys}).encode()


REFERENCES = {
    "auto_map": ("config.json", config_with(auto_map={"AutoModel": "other/code--modeling.Model"})),
    "auto_map of a tokenizer": (
        "tokenizer_config.json",
        b'{"auto_map": {"AutoTokenizer": ["other/code--tok.Slow", null]}}',
    ),
    "auto_map of a processor": ("processor_config.json", b'{"auto_map": {"AutoProcessor": "other/code--p.P"}}'),
    "vision tower": ("config.json", config_with(mm_vision_tower="other/code")),
    "adapter": ("adapter_config.json", b'{"base_model_name_or_path": "other/code"}'),
}


@pytest.mark.parametrize("case", REFERENCES)
def test_r3_a_config_that_names_another_repository(project: Project, hub: HubServer, case: str) -> None:
    """R3: a repository that the engine would open and that is not locked is an error naming it."""
    path, data = REFERENCES[case]
    hub.add(NAME, {**FILES, path: data})
    hub.add("other/code", {"modeling.py": b"class Model: ...\n"})
    with pytest.raises(InvalidDocumentError, match="names other/code, which is not locked"):
        project.lock()
    project.edit("[launch]\n", OTHER.replace("ROLE", "code").replace("REPOSITORY", "other/code") + "\n[launch]\n")
    locked = project.lock()
    other = next(each for each in locked.document.checkpoints if each.role == "code")
    assert [file.path for file in other.listed] == ["modeling.py"]


def test_r3_what_transformers_notes_down_is_no_reference(project: Project, hub: HubServer) -> None:
    """`_name_or_path` is a note about where a model came from; no engine opens it."""
    hub.add(NAME, {**FILES, "config.json": config_with(_name_or_path="other/base")})
    project.lock()


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("tokenizer-path", '"other/words"'),
        ("speculative-draft-model-path", '"other/draft"'),
        ("speculative-token-map", '"other/words/freq_32768.pt"'),
        ("lora-paths", '["name=other/adapter"]'),
        ("lora-modules", '\'{"name": "a", "path": "other/adapter"}\''),
        ("speculative-config", '\'{"model": "other/draft", "num_speculative_tokens": 3}\''),
    ],
)
def test_r3_an_argument_that_names_a_repository(project: Project, flag: str, value: str) -> None:
    """R3: a plain repository name in an argument would come from its main branch: it is refused and named."""
    project.edit("page-size = 16\n", f"page-size = 16\n{flag} = {value}\n")
    with pytest.raises(InvalidDocumentError, match=rf"launch\.arguments\.{flag} names other/\w+, which is not locked"):
        project.lock()


def test_r3_a_locked_repository_is_named_by_its_role(project: Project, hub: HubServer) -> None:
    """A repository that is locked must be written as its placeholder, or the engine fetches it anew."""
    hub.add("other/words", {"tokenizer.json": b"{}"})
    project.edit("[launch]\n", OTHER.replace("ROLE", "tokenizer").replace("REPOSITORY", "other/words") + "\n[launch]\n")
    project.edit("page-size = 16\n", 'page-size = 16\ntokenizer-path = "other/words"\n')
    with pytest.raises(InvalidDocumentError, match="main branch") as caught:
        project.lock()
    assert "{checkpoint.tokenizer}" in caught.value.todo


def test_remote_code_is_shown(project: Project, hub: HubServer) -> None:
    """trust_remote_code is told with the Python files that it runs, and an engine may not trust more than the lock."""
    code = {"modeling.py": b"class Model: ...\n"}
    hub.add(NAME, {**FILES, **code, "config.json": config_with(auto_map={"AutoModel": "modeling.Model"})})
    notes = Notes()
    project.lock(reporter=notes)
    assert any("trust_remote_code is off" in line for line in notes.lines)
    project.edit("page-size = 16\n", "page-size = 16\ntrust-remote-code = true\n")
    with pytest.raises(InvalidDocumentError, match="would run code of the checkpoint"):
        project.lock()
    project.edit("page-size = 16\ntrust-remote-code = true\n", "page-size = 16\n")
    project.edit("trust_remote_code = false", "trust_remote_code = true")
    project.lock(reporter=notes)
    assert any("trust_remote_code is on; Python files that are run: modeling.py" in line for line in notes.lines)


def test_r4_a_changed_template_is_behaviour(project: Project, hub: HubServer) -> None:
    """R4: a chat template that its vendor changed is a change of behaviour, and the namespace stays."""
    project.written()
    before = opened(project)
    changed = b'{"chat_template": "{{ messages }} and tools"}'
    hub.add(NAME, {**FILES, "tokenizer_config.json": changed})
    after = OpenedLock(project.lock(upgrade=frozenset({"model"})).document, project.path)
    result = diff(before, after)
    consequences = {each.path: each.consequence for each in result.changes}
    template = next(path for path in consequences if "tokenizer_config.json" in path and path.endswith("sha256"))
    assert consequences[template] == "behaviour"
    assert derive(before.lock).name == derive(after.lock).name


def test_unknown_digests_are_a_state_of_their_own(project: Project, hub: HubServer) -> None:
    """Revision only: shown as unknown, never a namespace shared; fetched and locked again it is complete."""
    kept = hub.repositories[NAME].refs["main"]
    unknown = f'repository = "some/model", revision = "{kept}", digests = "unknown" }}'
    project.edit('repository = "some/model" }', unknown)
    notes = Notes()
    locked = project.written(reporter=notes)
    assert target_of(locked).files == "unknown"
    assert any("digests unknown" in line for line in notes.lines)
    assert locked.document.launch.effective == {}
    assert 'files = "unknown"' in project.path.read_text("utf-8")
    other = replace(locked, document=locked.document.model_copy(update={"name": "twin"})).document
    assert derive(locked.document).digest != derive(other).digest
    store = Store(project.folder / "store-of-fetch")
    brought = fetch(opened(project), store, indexes=Indexes((project.index.url,)), reporter=notes).checkpoints
    assert brought.unknown == ("model",)
    assert brought.folders == {}
    fresh = Project(project.folder, project.index, store, project.indexes)
    complete = fresh.written()
    assert {file.path for file in target_of(complete).listed} == set(FILES)
    assert complete.document.launch.effective["dtype"] == "float16"
    assert fresh.lock(offline=True).reasons == ()


def test_an_unknown_checkpoint_is_not_built(project: Project, hub: HubServer) -> None:
    """Nothing is built for a lock of which nobody knows the weights."""
    from reproducer.build.runtime import build

    kept = hub.repositories[NAME].refs["main"]
    project.edit(
        'repository = "some/model" }', f'repository = "some/model", revision = "{kept}", digests = "unknown" }}'
    )
    project.written()
    lock = opened(project)
    fetched = fetch(lock, project.store, indexes=project.indexes, reporter=Silent())
    notes = Notes()
    with pytest.raises(NotCheckedError, match="files of checkpoint model are not known"):
        build(lock, project.store, fetched, reporter=notes, accepted="--yes")
    assert notes.lines == []


HOSTILE: dict[str, dict[str, Any]] = {
    "leaves": {"path": "../../outside"},
    "absolute": {"path": "/nowhere/at/all"},
    "control": {"path": "a\x1b[2Jb"},
    "newline": {"path": "a\nb"},
    "option": {"path": "-rf"},
    "backslash": {"path": "a\\b"},
    "case": {"path": "CONFIG.json"},
    "twice": {"path": "config.json"},
    "under a file": {"path": "config.json/x"},
    "no size": {"path": "x", "size": -1},
    "size of text": {"path": "x", "size": "12"},
    "no digest": {"path": "x", "lfs": {"oid": "zz", "size": 12, "pointerSize": 1}},
    "two sizes": {"path": "x", "lfs": {"oid": "a" * 64, "size": 13, "pointerSize": 1}},
    "no name": {"path": None},
    "git file beyond all bounds": {"path": "x", "size": 1 << 40},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_list_is_refused(project: Project, hub: HubServer, case: str) -> None:
    """Names that escape, collide or steer a terminal, and sizes and digests that are none, are refused as such."""
    entry = {"type": "file", "oid": "b" * 40, "size": 12, **HOSTILE[case]}
    hub.repositories[NAME].extra.append(entry)
    with pytest.raises(UnsafeInputError) as caught:
        project.lock()
    assert "\x1b" not in str(caught.value)
    assert not (project.folder.parent / "outside").exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{}", "is no list"),
        (b"not json", "is not JSON"),
        (b'[1, "two"]', "neither file nor folder"),
        (b"[" * 100_000, "is not JSON"),
        (b'[{"type": "link"}]', "neither file nor folder"),
        (b"[]", "holds no file"),
    ],
)
def test_a_list_that_is_none_is_refused(project: Project, hub: HubServer, body: bytes, why: str) -> None:
    """Answers that are no list of files are refused, not believed."""
    hub.faults.tree_body = body
    with pytest.raises(UnsafeInputError, match=why):
        project.lock()


def test_pages_do_not_lead_elsewhere(project: Project, hub: HubServer) -> None:
    """The next page of a list comes from the same server, or the token would go to another one."""
    hub.faults.next_page = f"{hub.cdn}/api/models/{NAME}/tree/x"
    with pytest.raises(UnsafeInputError, match="goes on at another server"):
        project.lock()


def test_a_git_file_with_other_bytes_is_refused(project: Project, hub: HubServer) -> None:
    """A small file whose bytes do not have the listed git object name never reaches a lock."""
    hub.faults.other_bytes[hashlib.sha256(CONFIG).hexdigest()] = CONFIG.replace(b"2048", b"4096")
    with pytest.raises(DriftError, match="is not the file that was expected") as caught:
        project.lock()
    assert blob_id(CONFIG) in caught.value.why
