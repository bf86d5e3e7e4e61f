"""A running server gives a lock: what it says is what runs, what it does not know it says, and secrets stay out."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproducer.documents.environment import AdoptedEnvironment, Observation
from reproducer.documents.lock import Lock
from reproducer.documents.sources import HubSource
from reproducer.errors import DriftError, NotCheckedError, UsageError
from reproducer.freeze.found import find
from reproducer.locking.render import render_lock
from tests.freeze.conftest import VERSION, World, keys, write_wheel

WORDS = ("--attention-backend", "torch_native", "--page-size=16", "--disable-cuda-graph", "--tags", "a", "b")


def environment_of(frozen_files: dict[str, bytes]) -> AdoptedEnvironment:
    """The list of distributions beside a lock."""
    data = next(data for path, data in frozen_files.items() if "/environment-" in path)
    return AdoptedEnvironment.from_json(data, where="environment.json")


def test_a_lock_says_what_runs(world: World) -> None:
    """Arguments by the engine's own types and names, effective values of the live server, every distribution."""
    _, port = world.start(*WORDS, "--hicache-ratio", "2")
    frozen = world.freeze(port)
    lock = frozen.document
    assert lock.manifest is None
    assert lock.launch.module == "sglang.launch_server"
    assert lock.launch.arguments == {
        "attention-backend": "torch_native",
        "disable-cuda-graph": True,
        "hicache-ratio": 2,
        "model-path": "{checkpoint.target}",
        "page-size": 16,
        "tags": ("a", "b"),
    }
    effective = lock.launch.effective
    assert effective["attention_backend"] == "torch_native"
    assert effective["kv_cache_dtype"] == "bfloat16"  # only the log tells it
    assert effective["model_path"] == "{checkpoint.target}"
    assert effective["page_size"] == 16
    document = environment_of(frozen.files)
    assert {each.project: each.version for each in document.distributions} == {"sglang": VERSION, "small-thing": "1.2"}
    assert not any(each.drifted for each in document.distributions)
    assert lock.engine.arguments is not None
    assert [each.path for each in lock.target.listed] == ["config.json", "model.safetensors", "tokenizer_config.json"]
    assert lock.qualification.measures[0].id == "chat.smoke/1"


def test_what_the_server_shows_counts_and_nothing_is_guessed(world: World) -> None:
    """An argument that the server resolved otherwise has the value it shows; what it does not show is unknown."""
    _, port = world.start(*WORDS, variables={"SGLANG_STAND_IN": "other"})
    frozen = world.freeze(port)
    assert frozen.document.launch.arguments["page-size"] == 16
    assert frozen.document.launch.effective["page_size"] == 64
    assert "context_length" not in frozen.document.launch.effective
    assert "launch.effective.context_length" in keys(frozen.unknown)


def test_freezing_twice_gives_the_same_bytes_and_names_no_machine(world: World) -> None:
    """The lock and all beside it are the same again, and hold no path, host or user name of this machine."""
    _, port = world.start(*WORDS)
    one, two = world.freeze(port), world.freeze(port)
    assert render_lock(one.document) == render_lock(two.document)
    assert one.files == two.files
    text = b"".join([render_lock(one.document), *one.files.values()]).decode()
    assert str(world.folder) not in text
    assert os.uname().nodename not in text
    assert Lock.from_data(one.document.content(), where="again").digest == one.document.digest


def test_the_same_packages_elsewhere_give_the_same_list(world: World, tmp_path: Path) -> None:
    """Where an environment lies and who installed it do not count: a second one gives the same document."""
    (tmp_path / "second").mkdir()
    other = World(tmp_path / "second")
    try:
        _, port = world.start()
        _, elsewhere = other.start()
        assert environment_of(world.freeze(port).files) == environment_of(other.freeze(elsewhere).files)
    finally:
        other.end()


def test_secrets_are_left_out_by_name(world: World) -> None:
    """Tokens, keys, passwords and proxies with credentials stand nowhere; their names are told."""
    secrets = {
        "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx",
        "SGLANG_API_KEY": "sesame-open-1",
        "https_proxy": "http://bob:sesame-open-2@proxy:3128",
        "SGLANG_STAND_IN_URL": "https://bob:sesame-open-3@example.org/x",
        "MY_PASSWORD": "sesame-open-4",
    }
    _, port = world.start("--api-key", "sesame-open-5", variables=secrets)
    frozen = world.freeze(port)
    text = b"".join([render_lock(frozen.document), *frozen.files.values()]).decode()
    for secret in ("hf_abcdef", "sesame-open"):
        assert secret not in text
    told = {each.key: each.why for each in frozen.left_out}
    for name in secrets:
        assert "secret" in told[f"launch.environment.{name}"]
    assert "secret" in told["launch.arguments.api-key"]


def test_variables_are_kept_where_they_are_known_and_listed_where_not(world: World) -> None:
    """What the engine or what it runs on reads is kept; code loaders are unknown; the rest is listed by name."""
    variables = {
        "DO_NOT_TRACK": "1",
        "OMP_NUM_THREADS": "2",
        "SGLANG_UNHEARD_OF": "x",
        "LD_LIBRARY_PATH": "",
        "EDITOR": "vi",
        "TRITON_CACHE_DIR": str(world.folder / "triton"),
        "HOSTNAME": "somewhere",
        "SGLANG_PEER": "10.1.2.3:5000",
    }
    _, port = world.start(variables=variables)
    frozen = world.freeze(port)
    assert frozen.document.launch.environment == {
        "DO_NOT_TRACK": "1",
        "OMP_NUM_THREADS": "2",
        "SGLANG_UNHEARD_OF": "x",
    }
    assert {"launch.environment.LD_LIBRARY_PATH", "launch.environment.TRITON_CACHE_DIR"} <= keys(frozen.unknown)
    assert "an address" in next(each.why for each in frozen.unknown if each.key == "launch.environment.SGLANG_PEER")
    assert {"launch.environment.EDITOR", "launch.environment.HOSTNAME"} <= keys(frozen.left_out)


def test_paths_become_files_placeholders_or_unknown(world: World) -> None:
    """A template travels beside the lock; a folder of this machine is left out and said."""
    template = world.folder / "chat.jinja"
    template.write_text("{{ messages }}")
    _, port = world.start("--chat-template", str(template), "--crash-dump-folder", str(world.folder / "dumps"))
    frozen = world.freeze(port)
    launch = frozen.document.launch
    assert launch.arguments["chat-template"] == "{file.chat-template}"
    assert launch.files is not None
    assert frozen.files[launch.files["chat-template"].path] == b"{{ messages }}"
    assert "crash-dump-folder" not in launch.arguments
    assert "launch.arguments.crash-dump-folder" in keys(frozen.unknown)


def test_the_commit_is_that_of_the_running_artefact(world: World) -> None:
    """R6: labelled with one commit, running another: the lock has the commit that is checked out, with its changes."""
    project = world.into_checkout()
    label = world.git("rev-parse", "HEAD")
    (project / "python" / "sglang" / "more.py").write_text("X = 1\n")
    world.git("add", ".")
    world.git("commit", "-qm", "two")
    head = world.git("rev-parse", "HEAD")
    (project / "python" / "sglang" / "more.py").write_text("X = 2\n")
    _, port = world.start(variables={"SGLANG_COMMIT": label})
    frozen = world.freeze(port)
    stated = next(each for each in environment_of(frozen.files).distributions if each.project == "sglang")
    assert stated.checkout is not None
    assert stated.checkout.commit == head != label
    assert stated.checkout.url == "https://example.org/fork.git"
    assert stated.checkout.changes is not None
    assert b"+X = 2" in frozen.files[stated.checkout.changes.path]
    how = next(each["how"] for each in frozen.rebuild if each["project"] == "sglang")
    assert head in how


def test_a_server_that_says_another_version_is_refused(world: World) -> None:
    """R6: what is installed now is not what runs."""
    _, port = world.start(variables={"SGLANG_STAND_IN_VERSION": "0.5.23"})
    with pytest.raises(DriftError, match=r"says it is version '0\.5\.23', and 0\.5\.10 is installed") as caught:
        world.freeze(port)
    assert caught.value.exit_code == 65


def test_files_written_after_the_start_are_told(world: World) -> None:
    """R17: the server may run what a file was before."""
    _, port = world.start()
    path = world.site / "sglang" / "launch_server.py"
    later = time.time() + 60
    os.utime(path, (later, later))
    frozen = world.freeze(port)
    assert "launch_server.py" in next(each.why for each in frozen.unknown if each.key == "engine")


def test_another_process_on_the_port_is_refused(world: World) -> None:
    """R17: an old process keeps the port, and the new one is never measured: both are named, and they must agree."""
    old, port = world.start()
    new, _ = world.start()
    with pytest.raises(DriftError, match=f"pid {new} is not what answers on port {port}") as caught:
        find(pid=new, port=port)
    assert f"pid {old}" in caught.value.why
    assert find(pid=old, port=port).process.pid == old


def test_the_process_is_identified(world: World) -> None:
    """R17: pid, start time and build id of what was frozen are told, and stand in no lock."""
    pid, port = world.start()
    frozen = world.freeze(port)
    assert frozen.process["pid"] == pid
    assert frozen.process["start_ticks"] == world.found(port).process.start_ticks
    assert frozen.process["started"] not in render_lock(frozen.document).decode()


def test_a_server_that_ends_meanwhile_gives_no_lock(world: World) -> None:
    """Killed while it is frozen: nothing is written of a process that is not there any more."""
    pid, port = world.start()
    found = world.found(port)
    os.kill(pid, signal.SIGKILL)
    world.started[0].wait()
    with pytest.raises(NotCheckedError, match="ended while it was read"):
        found.still_there()


def test_drift_against_the_record_is_locked_as_it_is_and_told(world: World) -> None:
    """A package that was edited in place: the file is named, with its digest."""
    (world.site / "small_thing" / "__init__.py").write_text("WORD = 2\n")
    (world.site / "dropped.py").write_text("Y = 1\n")
    _, port = world.start()
    frozen = world.freeze(port)
    document = environment_of(frozen.files)
    edited = next(each for each in document.distributions if each.project == "small-thing")
    assert [each.path for each in edited.drifted or ()] == ["small_thing/__init__.py"]
    assert [each.path for each in document.loose if not each.path.startswith("_virtualenv")] == ["dropped.py"]
    assert {"adopted.distributions.small-thing", "adopted.loose"} <= keys(frozen.unknown)


def test_libraries_and_compilers_are_recorded(world: World) -> None:
    """The interpreter's own libraries with their build ids, and each compiler or that there is none."""
    _, port = world.start()
    frozen = world.freeze(port)
    data = next(data for path, data in frozen.files.items() if "/observed-" in path)
    observed = Observation.from_json(data, where="observed.json")
    assert observed.engine_version == VERSION
    assert any(each.name.startswith("libc.so") and len(each.build_id) == 40 for each in observed.libraries)
    assert set(observed.compilers) == {"cc", "gcc", "g++", "clang", "nvcc"}
    for name, version in observed.compilers.items():
        program = shutil.which(name)
        assert (version == "none") is (program is None)
        if program is not None:
            said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
            assert version.count(".") == 2
            assert version in said


@pytest.mark.parametrize("mode", ["garbage", "list"])
def test_a_server_that_answers_nonsense_gives_unknown_values(world: World, mode: str) -> None:
    """Nothing is taken from an answer that is no table; the lock says that no effective value is known."""
    _, port = world.start(variables={"SGLANG_STAND_IN": mode})
    frozen = world.freeze(port)
    assert frozen.document.launch.effective == {}
    assert "launch.effective" in keys(frozen.unknown)


@pytest.mark.parametrize("mode", ["never", "drip", "headers"])
def test_a_server_that_never_answers_is_not_waited_for(
    world: World, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole question has one deadline, however the answer comes."""
    monkeypatch.setattr("reproducer.freeze.answers.server_info.__kwdefaults__", {"secure": False, "patience_s": 1.0})
    _, port = world.start(variables={"SGLANG_STAND_IN": mode})
    since = time.monotonic()
    frozen = world.freeze(port)
    assert time.monotonic() - since < 20
    assert "no answer in time" in next(each.why for each in frozen.unknown if each.key == "launch.effective")


def test_hostile_words_are_carried_or_left_out(world: World) -> None:
    """Control characters are text as any other; bytes that are no UTF-8 stand in no lock."""
    name = "a\x1b[31mred\nline"
    _, port = world.start("--served-model-name", name)
    frozen = world.freeze(port)
    assert frozen.document.launch.arguments["served-model-name"] == name
    assert b"\x1b" not in render_lock(frozen.document)


def test_nobody_listens(world: World) -> None:
    """A port without a server, and a process that is none."""
    with pytest.raises(NotCheckedError, match="nobody listens there"):
        find(pid=None, port=1)
    with pytest.raises(UsageError, match="nothing names a server"):
        find(pid=None, port=None)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    world.started.append(process)
    world.store.prepare()
    from reproducer.freeze.freezing import freeze
    from reproducer.freeze.notes import Asked
    from reproducer.progress import Silent

    with pytest.raises(NotCheckedError, match="cannot say which module serves"):
        freeze(find(pid=process.pid, port=None), Asked(host="127.0.0.1", port=None), world.store, reporter=Silent())


def test_a_configuration_file_is_read_as_the_server_reads_it(world: World) -> None:
    """`--config`: its arguments stand in the lock, the command line counts before them, and no file is named."""
    reader = "import json\ndef safe_load(data):\n    return json.loads(data)\n"
    world.install(write_wheel(world.folder / "wheels", "pyyaml", "6.0", {"yaml/__init__.py": reader}))
    config = world.folder / "server.yaml"
    config.write_text('{"page_size": 32, "hicache-ratio": 3.5, "disable-cuda-graph": true, "tags": ["x"]}')
    _, port = world.start("--page-size", "16", "--config", str(config))
    arguments = world.freeze(port).document.launch.arguments
    assert arguments == {
        "disable-cuda-graph": True,
        "hicache-ratio": 3.5,
        "model-path": "{checkpoint.target}",
        "page-size": 16,
        "tags": ("x",),
    }
    config.write_text("no table")
    frozen = world.freeze(port)
    assert "launch.arguments.config" in keys(frozen.unknown)


def test_every_checkpoint_has_its_role(world: World) -> None:
    """A draft and a tokenizer of their own; a tokenizer that is the target's is no second checkpoint."""
    draft = world.folder / "models" / "draft"
    draft.mkdir()
    (draft / "config.json").write_text("{}")
    target = str(world.checkpoint)
    _, port = world.start("--speculative-draft-model-path", str(draft), "--tokenizer-path", f"{target}/")
    lock = world.freeze(port).document
    assert [(each.role, each.name) for each in lock.checkpoints] == [("target", "tiny"), ("draft", "draft")]
    assert lock.launch.arguments["speculative-draft-model-path"] == "{checkpoint.draft}"
    assert lock.launch.arguments["tokenizer-path"] == "{checkpoint.target}"


def test_a_model_named_by_its_repository(world: World) -> None:
    """R3: the name becomes one revision, every file verified, and the server still answers to that name."""
    commit, variables = world.into_hub_cache()
    _, port = world.start("--model-path", "org/tiny", variables=variables)
    frozen = world.freeze(port)
    target = frozen.document.target
    assert target.source == HubSource(repository="org/tiny", revision=commit)
    launch = frozen.document.launch
    assert launch.arguments["model-path"] == "{checkpoint.target}"
    assert launch.arguments["served-model-name"] == "org/tiny"
    assert launch.effective["model_path"] == "{checkpoint.target}"
    assert launch.effective["served_model_name"] == "org/tiny"


def test_killed_while_it_freezes_nothing_is_left(world: World) -> None:
    """Penny is killed before it wrote: no lock, no part of one, and the server goes on."""
    pid, port = world.start(variables={"SGLANG_STAND_IN": "never"})
    command = [sys.executable, "-m", "reproducer", "freeze", "--url", f"http://127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, "--store", str(world.folder / "store")],
        cwd=world.work,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert b"freezing pid" in process.stderr.readline()
    time.sleep(1)
    process.kill()
    process.wait()
    process.stderr.close()
    assert list(world.work.iterdir()) == []
    os.kill(pid, 0)


def test_the_server_is_killed_while_it_is_frozen(world: World) -> None:
    """Nothing is written of a process that has gone: exit 96."""
    pid, port = world.start(variables={"SGLANG_STAND_IN": "never"})
    command = [sys.executable, "-m", "reproducer", "freeze", "--url", f"http://127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*command, "--store", str(world.folder / "store")],
        cwd=world.work,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert b"freezing pid" in process.stderr.readline()
    time.sleep(2)
    os.kill(pid, signal.SIGKILL)
    world.started[0].wait()
    _, err = process.communicate()
    assert process.returncode == 96
    assert b"ended while it was read" in err
    assert not (world.work / "frozen.lock.toml").exists()


def test_a_server_elsewhere_gives_no_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what it tells is known: nothing is written, everything else is listed as unknown, exit 96."""
    _, port = world.start(*WORDS)
    monkeypatch.setattr("reproducer.freeze.found.is_here", lambda _host: False)
    from typer.testing import CliRunner

    from reproducer.cli.app import app

    monkeypatch.chdir(world.work)
    ran = CliRunner().invoke(app, ["freeze", "--url", f"http://127.0.0.1:{port}", "--json"])
    assert ran.exit_code == 96
    told = json.loads(ran.stdout)
    assert told["lock"] is None
    assert told["effective"]["page_size"] == 16
    assert {"adopted", "checkpoints", "launch.arguments"} <= {each["key"] for each in told["unknown"]}
    assert list(world.work.iterdir()) == []
