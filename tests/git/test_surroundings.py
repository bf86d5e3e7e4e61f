"""Nothing of a repository, of a manifest or of the caller's surroundings runs or steers git; credentials still work."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reproducer.errors import NotCheckedError, UnsafeInputError
from reproducer.git.addresses import Address, address
from reproducer.git.changes import changes_of, clean_submodule, working_tree
from reproducer.git.mirrors import Mirror
from reproducer.git.references import resolve
from reproducer.git.running import run
from tests.git.conftest import PERSON, Desk, Repository, Serve, Server, bare

HOOKS = """applypatch-msg pre-commit post-checkout post-merge post-index-change reference-transaction pre-auto-gc
post-rewrite fsmonitor-watchman pre-receive update post-receive post-update push-to-checkout sendemail-validate"""


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The file that every trap makes when it runs."""
    return tmp_path / "ran"


@pytest.fixture
def trap(tmp_path: Path, ran: Path) -> Path:
    """A program that says it ran."""
    program = tmp_path / "trap"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\nexit 0\n')
    program.chmod(0o755)
    return program


def _armed(repository: Repository, trap: Path) -> None:
    """Name the trap in every place where a repository may name a program."""
    config = {
        "core.fsmonitor": str(trap),
        "core.sshCommand": str(trap),
        "core.pager": str(trap),
        "core.editor": str(trap),
        "core.askPass": str(trap),
        "core.gitProxy": str(trap),
        "core.alternateRefsCommand": str(trap),
        "credential.helper": f"!{trap}",
        "diff.external": str(trap),
        "diff.evil.textconv": str(trap),
        "diff.evil.command": str(trap),
        "merge.evil.driver": str(trap),
        "filter.evil.clean": str(trap),
        "filter.evil.smudge": str(trap),
        "filter.evil.process": str(trap),
        "filter.evil.required": "true",
        "uploadpack.packObjectsHook": str(trap),
        "gpg.program": str(trap),
        "pager.diff": str(trap),
        "protocol.ext.allow": "always",
        "uploadpack.allowFilter": "true",
    }
    for key, value in config.items():
        repository.git("config", key, value)
    folder = Path(repository.git("rev-parse", "--git-path", "hooks"))
    folder = folder if folder.is_absolute() else repository.path / folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in HOOKS.split():
        hook = folder / name
        hook.write_bytes(trap.read_bytes())
        hook.chmod(0o755)
    # git reads these without running anything; whoever checks the files out or compares them runs what they name.
    repository.write({".gitattributes": "* filter=evil diff=evil merge=evil\n"})


def test_repository_runs_nothing(desk: Desk, repository: Repository, trap: Path, ran: Path, tmp_path: Path) -> None:
    """Resolving, fetching, reading, exporting and comparing run no program that a repository or a submodule names."""
    part = Repository.new(tmp_path / "part")
    part.commit({"part.txt": "1"})
    repository.submodule("../part", "part")
    repository.commit({".gitattributes": "* filter=evil diff=evil merge=evil\n"})
    inner = Repository(repository.path / "part")
    _armed(repository, trap)
    _armed(inner, trap)
    (inner.path / ".gitattributes").unlink()
    # A new time makes git look into the file, by way of the filter that the submodule's own folder names.
    inner_folder = Path(inner.git("rev-parse", "--absolute-git-dir"))
    (inner_folder / "info").mkdir(exist_ok=True)
    (inner_folder / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    os.utime(inner.path / "part.txt", (1, 1))
    (repository.path / "kernel.py").write_text("KERNEL = 2\n")
    place = address(repository.path.as_uri(), root=tmp_path, where="manifest")
    found = resolve(place, "main", folder=tmp_path, where="manifest")
    source = desk.source(repository.path, found.commit)
    assert desk.exported(source)["kernel.py"] == "KERNEL = 1\n"
    tree = working_tree(repository.path)
    assert tree is not None
    with desk.store.private_folder() as work:
        mirror = Mirror.of(desk.store, None, found.commit)
        patch = changes_of(tree, mirror, work / "changes", where="kernel")
        (module,) = source.submodules
        clean_submodule(inner.path, module, Mirror.of(desk.store, None, module.commit), work / "inner", where="kernel")
    assert patch is not None
    assert desk.exported(source, "changed", changes=patch)["kernel.py"] == "KERNEL = 2\n"
    assert not ran.exists(), ran.read_text()
    subprocess.run(["git", "status"], cwd=repository.path, env=PERSON, capture_output=True, check=False)
    assert ran.exists(), "the traps are set: git as a person runs it steps into them"


def test_served_repository_runs_nothing(desk: Desk, repository: Repository, trap: Path, ran: Path, web: Serve) -> None:
    """Attributes that a served repository brings name nothing here."""
    repository.commit({".gitattributes": "* filter=evil diff=evil\n"})
    server = web()
    bare(repository, server.folder, "kernel.git")
    source = desk.source(server.at("kernel.git"), repository.head)
    assert desk.exported(source)["kernel.py"] == "KERNEL = 1\n"
    assert not ran.exists()
    assert trap.exists()


def test_variables_of_the_caller(  # noqa: PLR0917  fixtures
    desk: Desk,
    repository: Repository,
    daemon: Server,
    trap: Path,
    ran: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No GIT_* variable of the caller reaches git: not its folders, not its configuration, not its programs."""
    run(["version"], folder=tmp_path, what="loading GitPython, which looks for git once")
    bare(repository, daemon.folder, "kernel.git")
    elsewhere = Repository.new(tmp_path / "elsewhere")
    elsewhere.commit({"evil.py": "EVIL = 1\n"})
    hostile = {
        "GIT_DIR": str(elsewhere.path / ".git"),
        "GIT_WORK_TREE": str(elsewhere.path),
        "GIT_INDEX_FILE": str(tmp_path / "no-index"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "no-objects"),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(elsewhere.path / ".git" / "objects"),
        "GIT_NAMESPACE": "other",
        "GIT_SHALLOW_FILE": str(tmp_path / "no-shallow"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{elsewhere.path}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"{daemon.url}/kernel.git",
        "GIT_CONFIG_PARAMETERS": f"'core.gitProxy={trap}'",
        "GIT_PROXY_COMMAND": str(trap),
        "GIT_SSH": str(trap),
        "GIT_SSH_COMMAND": str(trap),
        "GIT_ASKPASS": str(trap),
        "SSH_ASKPASS": str(trap),
        "GIT_EXTERNAL_DIFF": str(trap),
        "GIT_PAGER": str(trap),
        "GIT_EDITOR": str(trap),
        "GIT_TEMPLATE_DIR": str(tmp_path),
        "GIT_ALLOW_PROTOCOL": "ext:file:git:https",
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_ATTR_SOURCE": "HEAD",
        "GIT_REPLACE_REF_BASE": "refs/heads/",
        "GIT_DEFAULT_HASH": "sha256",
        "GIT_LITERAL_PATHSPECS": "0",
        "GIT_EXEC_PATH": str(tmp_path),
    }
    for name, value in hostile.items():
        if name != "GIT_EXEC_PATH":  # with this one git finds no program at all
            monkeypatch.setenv(name, value)
    place = daemon.at("kernel.git")
    found = resolve(place, "main", folder=tmp_path, where="manifest")
    source = desk.source(place, found.commit)
    files = desk.exported(source)
    assert "evil.py" not in files
    assert files["kernel.py"] == "KERNEL = 1\n"
    tree = working_tree(repository.path)
    assert tree is not None
    assert tree.commit == found.commit
    assert not ran.exists()
    assert not (tmp_path / "trace").exists()
    commit = elsewhere.commit_tree(elsewhere.made_tree(("100644", elsewhere.blob(b"x"), ".GIT")))
    with pytest.raises(UnsafeInputError, match="objects that git refuses"):  # penny's own settings still reach git
        desk.contents(elsewhere.path, commit)


def test_program_in_a_working_tree(
    desk: Desk, repository: Repository, trap: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `git` that lies in a working tree is not run, though the caller's PATH says to look there first."""
    for name in ("git", "env"):
        (repository.path / name).write_bytes(trap.read_bytes())
        (repository.path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}")
    monkeypatch.chdir(repository.path)
    tree = working_tree(repository.path)
    assert tree is not None
    mirror = desk.reading().mirrored(None, tree.commit, (Address(path=repository.path),), where="kernel")
    with desk.store.private_folder() as work:
        assert changes_of(tree, mirror, work / "changes", where="kernel") is not None
    assert not ran.exists()


def test_exec_path(desk: Desk, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIT_EXEC_PATH names no programs to run in git's place."""
    monkeypatch.setenv("GIT_EXEC_PATH", str(tmp_path))
    assert desk.contents(repository.path, repository.head).tree


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives the person a home with this `.gitconfig`."""

    def write(text: str) -> None:
        folder = tmp_path / "home"
        folder.mkdir(exist_ok=True)
        (folder / ".gitconfig").write_text(text)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    return write


def test_configuration_of_the_person(  # noqa: PLR0917  fixtures
    desk: Desk,
    repository: Repository,
    web: Serve,
    trap: Path,
    ran: Path,
    tmp_path: Path,
    home: Callable[[str], None],
) -> None:
    """Of a person's own configuration nothing leads elsewhere or runs with a repository."""
    elsewhere = Repository.new(tmp_path / "elsewhere")
    elsewhere.commit({"evil.py": "EVIL = 1\n"})
    server = web()
    bare(repository, server.folder, "kernel.git")
    home(
        f'[url "{elsewhere.path}"]\n\tinsteadOf = {server.url}/kernel.git\n'
        f"[core]\n\tfsmonitor = {trap}\n\thooksPath = {tmp_path}\n\tsshCommand = {trap}\n"
        f"[init]\n\ttemplateDir = {tmp_path}\n\tdefaultObjectFormat = sha256\n"
        f"[uploadpack]\n\tpackObjectsHook = {trap}\n[protocol]\n\tallow = never\n[transfer]\n\tfsckObjects = false\n"
        f'[filter "evil"]\n\tclean = {trap}\n'
    )
    found = resolve(server.at("kernel.git"), "main", folder=tmp_path, where="manifest")
    assert found.commit == repository.head
    assert "kernel.py" in desk.exported(desk.source(server.at("kernel.git"), found.commit))
    assert "kernel.py" in desk.exported(desk.source(repository.path, found.commit), "local")
    assert not ran.exists()


def test_credentials(
    desk: Desk, repository: Repository, web: Serve, tmp_path: Path, home: Callable[[str], None]
) -> None:
    """A person's credential helper is asked for https and http; without one nobody is, and it says what to do."""
    server = web(person="penny:s3cret")
    bare(repository, server.folder, "kernel.git")
    place = server.at("kernel.git")
    home("")
    with pytest.raises(NotCheckedError, match="credentials for it in git's credential helper"):
        resolve(place, "main", folder=tmp_path, where="manifest")
    helper = tmp_path / "helper"
    helper.write_text("#!/bin/sh\necho username=penny\necho password=s3cret\n")
    helper.chmod(0o755)
    home(f"[credential]\n\thelper = !{helper}\n")
    assert resolve(place, "main", folder=tmp_path, where="manifest").commit == repository.head
    assert "kernel.py" in desk.exported(desk.source(place, repository.head))
    mirror = Mirror.of(desk.store, place.url, repository.head)
    assert "s3cret" not in (mirror.folder / "config").read_text()


def test_credentials_of_a_repository(  # noqa: PLR0917  fixtures
    repository: Repository, web: Serve, trap: Path, ran: Path, tmp_path: Path, home: Callable[[str], None]
) -> None:
    """A credential helper that a repository names is never asked, though git works in that repository."""
    server = web(person="penny:s3cret")
    home("")
    repository.git("config", "credential.helper", f"!{trap}")
    with pytest.raises(NotCheckedError):
        run(
            ["ls-remote", "--", f"{server.url}/kernel.git"],
            folder=repository.path,
            git_dir=repository.path / ".git",
            what="asking",
            transports=("http",),
        )
    assert not ran.exists()
    assert tmp_path.exists()


def test_ssh(desk: Desk, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ssh is the person's own, with their agent, and asks nothing."""
    folder = tmp_path / "programs"
    folder.mkdir()
    ssh = folder / "ssh"
    log = tmp_path / "ssh.log"
    ssh.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\necho "agent $SSH_AUTH_SOCK" >> {log}\n'
        'for last; do :; done\nexec sh -c "$last"\n'
    )
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent.1")
    monkeypatch.setenv("GIT_SSH_COMMAND", "false")
    place = address(f"git@git.example:{str(repository.path)[1:]}", root=tmp_path, where="manifest")
    found = resolve(place, "main", folder=tmp_path, where="manifest")
    assert found.commit == repository.head
    assert "kernel.py" in desk.exported(desk.source(place, repository.head))
    said = log.read_text()
    assert "-o BatchMode=yes" in said
    assert "git@git.example" in said
    assert "agent /run/agent.1" in said


@pytest.mark.parametrize("url", ["ext::{trap}", "ext::sh -c {trap}", "fd::0"])
def test_command_transports(url: str, trap: Path, ran: Path, tmp_path: Path, desk: Desk) -> None:
    """Even where an address got through, git is told to use no transport but those of a network."""
    place = Address(url=url.format(trap=trap))
    with pytest.raises(NotCheckedError):
        resolve(place, "main", folder=tmp_path, where="manifest")
    with pytest.raises(NotCheckedError):
        Mirror.of(desk.store, place.url, "1" * 40).bring(place, "1" * 40, reporter=desk.notes, what="kernel")
    assert not ran.exists()


def test_options_as_operands(trap: Path, ran: Path, tmp_path: Path, desk: Desk) -> None:
    """Even where an option got through as an address, git takes it for an address."""
    place = Address(url=f"--upload-pack={trap}")
    with pytest.raises(NotCheckedError, match="strange pathname"):
        resolve(place, "main", folder=tmp_path, where="manifest")
    with pytest.raises(NotCheckedError, match="strange pathname"):
        Mirror.of(desk.store, place.url, "1" * 40).bring(place, "1" * 40, reporter=desk.notes, what="kernel")
    assert not ran.exists()


def test_a_network_is_no_disk(repository: Repository, tmp_path: Path, desk: Desk) -> None:
    """An address of a network reaches no file, though git knows a transport for it."""
    place = Address(url=repository.path.as_uri())
    with pytest.raises(NotCheckedError, match="not allowed"):
        resolve(place, "main", folder=tmp_path, where="manifest")
    assert not Mirror.of(desk.store, place.url, repository.head).has(repository.head)


def test_no_git(repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no git it says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotCheckedError, match="no git"):
        resolve(Address(path=repository.path), "main", folder=tmp_path, where="manifest")
