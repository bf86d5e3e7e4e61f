"""Packages are read without being believed: hostile records, files that are not what was recorded, bounded sizes."""

import os
import sys
from pathlib import Path

import pytest

from reproducer.errors import NotCheckedError, UsageError
from reproducer.freeze.checkouts import folder_of, origin_of, public_git_url
from reproducer.freeze.installed import Interpreter, Inventory, ask_interpreter, take_inventory
from reproducer.progress import Silent


def place(folder: Path, record: bytes | None, files: dict[str, bytes], *, name: str = "thing") -> Inventory:
    """The inventory of a folder of packages with one distribution."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_bytes(f"Metadata-Version: 2.1\r\nName: {name}\r\nVersion: 1.0\r\n\r\n".encode())
    if record is not None:
        (info / "RECORD").write_bytes(record)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return take_inventory(Interpreter(Path(sys.executable), "3.11.1", "cpython", (folder,)), reporter=Silent())


EMPTY = "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"  # of no bytes


def test_a_record_that_leads_out_is_never_followed(tmp_path: Path) -> None:
    """Paths with `..` and absolute ones are dropped: the file outside is neither hashed nor told."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    record = f"../outside,{EMPTY},0\n{outside},{EMPTY},0\na/../../outside,{EMPTY},0\nin.py,{EMPTY},0\n".encode()
    inventory = place(tmp_path / "site", record, {"in.py": b""})
    (found,) = inventory.distributions
    assert found.stated.files == 1
    assert found.stated.drifted is None
    assert found.owned == {"in.py"}


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """A folder that is a link elsewhere, and a file that is a link: what lies there counts as not what was recorded."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.py").write_bytes(b"")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "pkg").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "site" / "y.py").symlink_to(tmp_path / "elsewhere" / "x.py")
    record = f"pkg/x.py,{EMPTY},0\ny.py,{EMPTY},0\n".encode()
    (found,) = place(tmp_path / "site", record, {}).distributions
    assert [(each.path, each.sha256) for each in found.stated.drifted or ()] == [("pkg/x.py", None), ("y.py", None)]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A recorded file that is a pipe nobody writes to."""
    (tmp_path / "site").mkdir()
    os.mkfifo(tmp_path / "site" / "in.py")
    (found,) = place(tmp_path / "site", f"in.py,{EMPTY},0\n".encode(), {}).distributions
    assert [each.path for each in found.stated.drifted or ()] == ["in.py"]


@pytest.mark.parametrize(
    "record",
    [None, b"\xff\xfe,,\n", b'"unfinished\n', b"a,b\n" * 500_001],
    ids=["none", "no text", "no table", "huge"],
)
def test_a_record_that_cannot_be_read_is_unknown(tmp_path: Path, record: bytes | None) -> None:
    """Its files then belong to nobody, and are locked as they lie there."""
    inventory = place(tmp_path / "site", record, {"in.py": b"x = 1\n"})
    (found,) = inventory.distributions
    assert found.stated.record_sha256 == "unknown"
    assert "in.py" in {each.path for each in inventory.loose}


def test_a_pruned_package_is_locked_as_it_is(tmp_path: Path) -> None:
    """Thousands of missing files (an image without tests and headers) are each stated as missing."""
    record = "".join(f"f{number}.py,{EMPTY},0\n" for number in range(3000)).encode()
    (found,) = place(tmp_path / "site", record, {"f7.py": b""}).distributions
    assert found.stated.drifted is not None
    assert len(found.stated.drifted) == 2999
    assert all(each.sha256 is None for each in found.stated.drifted)


def test_a_record_of_everything_wrong_is_bounded(tmp_path: Path) -> None:
    """A package of which tens of thousands of files are missing is no package any more, and is named."""
    record = "".join(f"f{number}.py,{EMPTY},0\n" for number in range(20_100)).encode()
    with pytest.raises(NotCheckedError, match=r"thing-1.0.dist-info: more than 20000 files"):
        place(tmp_path / "site", record, {})


def test_place_and_installer_do_not_count(tmp_path: Path) -> None:
    """Scripts, the installer's notes and compiled modules are left out of the digest; content is not."""
    plain = f"in.py,{EMPTY},0\n"
    noted = f"../../../bin/tool,{EMPTY},9\nthing-1.0.dist-info/INSTALLER,{EMPTY},4\n__pycache__/in.pyc,,\n"
    digests = [
        place(tmp_path / str(index), record.encode(), {"in.py": b""}).distributions[0].stated.record_sha256
        for index, record in enumerate((plain, plain + noted, f"other.py,{EMPTY},0\n"))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_an_interpreter_is_asked_and_not_believed(tmp_path: Path) -> None:
    """What does not run, fails, or says nonsense is no interpreter."""
    liar = tmp_path / "python"
    for text, said in (
        ("#!/bin/sh\nexit 3\n", "is no Python that runs"),
        ("#!/bin/sh\necho '{}'\n", "does not say which Python it is"),
        ('#!/bin/sh\necho \'{"python": "4", "implementation": "x", "places": []}\'\n', "which no lock names"),
    ):
        liar.write_text(text)
        liar.chmod(0o755)
        with pytest.raises(UsageError, match=said):
            ask_interpreter(liar)
    found = ask_interpreter(Path(sys.executable))
    assert found.version == ".".join(map(str, sys.version_info[:3]))


def test_no_code_of_a_package_runs(tmp_path: Path) -> None:
    """A `.pth` file that would run code, and a sitecustomize, do not run while an environment is read."""
    import subprocess

    import uv

    venv = tmp_path / "venv"
    command = [
        uv.find_uv_bin(),
        "--no-config",
        "venv",
        "--offline",
        "--no-project",
        "--python",
        sys.executable,
        str(venv),
    ]
    subprocess.run(command, check=True, capture_output=True)
    site = next(venv.glob("lib/python3.*/site-packages"))
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').close()"
    (site / "evil.pth").write_text(f"import os; {code}\n")
    (site / "sitecustomize.py").write_text(code)
    python = ask_interpreter(venv / "bin" / "python")
    assert site.resolve() in python.places
    take_inventory(python, reporter=Silent())
    assert not mark.exists()
    subprocess.run([str(venv / "bin" / "python"), "-c", ""], check=True)
    assert mark.exists()  # the bait works


def test_a_system_python_that_looks_elsewhere_outside_of_an_environment(tmp_path: Path) -> None:
    """Debian's `site` names `dist-packages` where the prefix is no virtual environment's; that of one is seen."""
    packages = tmp_path / "venv" / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    debian = tmp_path / "debian.py"
    debian.write_text(
        "import site, sys\n"
        "plain = site.getsitepackages\n"
        "def patched(prefixes=None):\n"
        "    within = sys.prefix != sys.base_prefix\n"
        "    return plain(prefixes) if within else [f'{each}/lib/python3/dist-packages' for each in prefixes]\n"
        "site.getsitepackages = patched\n"
        "sys.argv = ['-c', *sys.argv[2:]]\n"
        "exec(CODE)\n"
    )
    python = tmp_path / "venv" / "bin" / "python3"
    python.parent.mkdir()
    python.write_text(
        f"#!{sys.executable}\n"
        "import subprocess, sys\n"
        f"patch = open({str(debian)!r}).read()\n"
        "*options, code, first, second = sys.argv[1:]\n"
        "text = f'CODE = {code!r}\\n' + patch\n"
        "sys.exit(subprocess.call([sys.executable, *options, text, '-', first, second]))\n"
    )
    python.chmod(0o755)
    assert ask_interpreter(python).places == (packages.resolve(),)


def test_origins_lose_what_only_their_machine_knows() -> None:
    """PEP 610: commits and digests stay; user names, passwords, queries and folders go."""
    commit = "a" * 40
    git = origin_of({"url": "https://me:token@example.org/x.git", "vcs_info": {"vcs": "git", "commit_id": commit}})
    assert git is not None
    assert (git.kind, git.url, git.commit) == ("git", "https://example.org/x.git", commit)
    archive = origin_of({"url": "https://me:t@example.org/x.whl?sig=1", "archive_info": {"hash": f"sha256={'b' * 64}"}})
    assert archive is not None
    assert (archive.url, archive.sha256) == ("https://example.org/x.whl", "b" * 64)
    folder = origin_of({"url": "file:///home/me/x", "dir_info": {}})
    assert folder is not None
    assert (folder.kind, folder.url) == ("folder", None)
    hostile = origin_of({"url": ["x"], "vcs_info": {"commit_id": "main"}})
    assert hostile is not None
    assert (hostile.url, hostile.commit) == (None, None)
    assert folder_of({"url": "file:///home/me/x", "dir_info": {"editable": True}}) == Path("/home/me/x")
    assert folder_of({"url": "https://example.org", "dir_info": {"editable": True}}) is None
    assert public_git_url("git@example.org:me/x.git") == "ssh://git@example.org/me/x.git"
    assert public_git_url("ext::sh -c id") is None
    assert public_git_url("/home/me/x") is None
