"""One lock has one namespace, whatever machine, user, folder, locale and Python it is worked out with."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reproducer.documents.opened import open_lock
from reproducer.identity.namespace import derive
from reproducer.locking.render import render_lock
from tests.identity.factory import make_lock

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, sys
from pathlib import Path
from reproducer.documents.opened import open_lock
from reproducer.identity.namespace import derive
found = [derive(open_lock(Path(each)).lock) for each in sys.argv[1:]]
print(json.dumps([[each.name, each.digest] for each in found]))
"""
OTHER_USER = 12345
OTHER_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NEEDED = ("pydantic>=2.11", "rfc8785>=0.1.4", "tomlkit>=0.13.2")


def draftless(data: dict[str, Any]) -> None:
    """Another lock, with text that is no ASCII."""
    data["checkpoints"].pop()
    data["launch"]["environment"]["NAME"] = "Zoë \U0001f600 \u0130\u0131"
    data["launch"]["arguments"]["scale"] = 1e-7


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The committed lock and two others, as penny writes them."""
    folder = tmp_path_factory.mktemp("locks")
    found = [folder / "default.toml", folder / "one.toml", folder / "two.toml"]
    shutil.copy(ROOT / "penny.lock.toml", found[0])
    found[1].write_bytes(render_lock(make_lock()))
    found[2].write_bytes(render_lock(make_lock(draftless)))
    folder.chmod(0o755)
    for path in found:
        path.chmod(0o644)
    return found


@pytest.fixture(scope="module")
def expected(locks: list[Path]) -> list[list[str]]:
    """What this process works out."""
    found = [derive(open_lock(path).lock) for path in locks]
    assert len({each.digest for each in found}) == 3
    return [[each.name, each.digest] for each in found]


def said(
    locks: list[Path],
    *,
    prefix: tuple[str, ...] = (),
    python: str = sys.executable,
    cwd: Path = ROOT,
    package: Path = ROOT,
    variables: dict[str, str] | None = None,
) -> list[list[str]]:
    """What another process works out."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.update(variables or {})
    command = [*prefix, python, "-c", SCRIPT, *map(str, locks)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": "/nonexistent"},
        {"HOME": "", "USER": "somebody", "LOGNAME": "else"},
        {"LC_ALL": "C"},
        {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"},
        {"LC_ALL": "de_DE.ISO-8859-1", "PYTHONUTF8": "0"},
        {"PYTHONUTF8": "1"},
        {"TZ": "Pacific/Kiritimati"},
        {"PYTHONHASHSEED": "0"},
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "4294967295"},
        {"PYTHONHASHSEED": "random"},
        {"PYTHONOPTIMIZE": "2"},
        {"SOURCE_DATE_EPOCH": "0", "TMPDIR": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"},
    ],
    ids=str,
)
def test_variables_of_the_caller_do_not_count(
    locks: list[Path], expected: list[list[str]], variables: dict[str, str]
) -> None:
    """Home, user, locale, time zone, hash seed, optimisation, folders for temporary files."""
    assert said(locks, variables=variables) == expected


@pytest.mark.parametrize("umask", ["000", "027", "077"])
def test_the_umask_does_not_count(locks: list[Path], expected: list[list[str]], umask: str) -> None:
    """Nor who may read what is written."""
    assert said(locks, prefix=("sh", "-c", f'umask {umask}; exec "$@"', "sh")) == expected


def test_the_working_folder_does_not_count(locks: list[Path], expected: list[list[str]], tmp_path: Path) -> None:
    """From the root, from the locks' folder by bare names, and by a way around."""
    assert said(locks, cwd=Path("/")) == expected
    assert said([Path(path.name) for path in locks], cwd=locks[0].parent) == expected
    (tmp_path / "link").symlink_to(locks[0].parent)
    assert said([tmp_path / ".." / tmp_path.name / "link" / path.name for path in locks]) == expected


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Penny in another place, with other times, for others to read and not to write."""
    place = tmp_path_factory.mktemp("another place") / "über all"
    shutil.copytree(ROOT / "reproducer", place / "reproducer", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (place, *place.rglob("*")):
        os.utime(path, (1, 1))
        path.chmod(0o555 if path.is_dir() else 0o444)
    return place


def test_the_place_does_not_count(locks: list[Path], expected: list[list[str]], copy: Path, tmp_path: Path) -> None:
    """Copies of penny and of the locks elsewhere, with other times and modes."""
    moved = []
    for index, path in enumerate(locks):
        target = tmp_path / f"{index} ümlaut" / "penny.lock.toml"
        target.parent.mkdir()
        shutil.copyfile(path, target)
        target.chmod(0o400)
        os.utime(target, (2**31, 2**31))
        moved.append(target)

    assert said(moved, package=copy, cwd=copy) == expected


def can(*command: str) -> bool:
    """Whether the machine lets us."""
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_the_host_name_does_not_count(locks: list[Path], expected: list[list[str]]) -> None:
    """In a namespace of its own, where the host has another name."""
    own = ("unshare", "--user", "--map-root-user", "--uts")
    if not can(*own, "true"):
        pytest.skip("the kernel gives no UTS namespace")
    inside = 'echo another-host >/proc/sys/kernel/hostname && test "$(uname -n)" = another-host && exec "$@"'

    assert said(locks, prefix=(*own, "sh", "-c", inside, "sh")) == expected


def visible(python: str) -> list[str]:
    """Where an interpreter and its packages lie."""
    script = (
        "import json, os, sys; "
        "print(json.dumps([sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), *sys.path]))"
    )
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return [each for each in found if each]


def fresh_root() -> str:
    """Shell steps that make a root of its own out of the programs of this machine, and run the rest in it."""
    needed = {"/usr", "/lib", "/lib64", "/bin", *visible(sys.executable)}
    below = {each for each in needed if any(each.startswith(f"{more}/") for more in needed)}
    steps = ['set -e; root="$1"; copy="$2"; locks="$3"; shift 3', 'mount -t tmpfs -o mode=0755 none "$root"']
    for path in sorted(Path(each) for each in needed - below if Path(each).exists()):
        if path.is_symlink() and len(path.parts) == 2:
            steps.append(f'ln -s "{path.readlink()}" "$root{path}"')
        elif path.is_dir():
            steps.append(f'mkdir -p "$root{path}"; mount --rbind "{path}" "$root{path}"')
        else:
            steps.append(f'mkdir -p "$root{path.parent}"; [ -e "$root{path}" ] || cp -L "{path}" "$root{path}"')
    steps += [
        'mkdir "$root/copy" "$root/locks"; mount --rbind "$copy" "$root/copy"; mount --rbind "$locks" "$root/locks"',
        'mount -o remount,ro "$root"; hostname fresh || echo fresh >/proc/sys/kernel/hostname',
    ]
    return "\n".join(steps)


@pytest.mark.parametrize("user", ["root", "another"])
def test_a_fresh_root_and_another_user_do_not_count(
    locks: list[Path], expected: list[list[str]], copy: Path, tmp_path: Path, user: str
) -> None:
    """As in a container: read-only, no /etc, no home, no network, another host name; a user without a name."""
    own: tuple[str, ...] = ("unshare", "--mount", "--uts", "--net", "--ipc")
    enter = 'exec chroot "$root" "$@"'
    if user == "root":
        own = (*own, "--user", "--map-root-user")
    elif os.geteuid() != 0:
        pytest.skip("only root becomes another user")
    else:
        enter = f'exec chroot --userspec={OTHER_USER}:{OTHER_USER} "$root" "$@"'
    root = tmp_path / "root"
    root.mkdir()
    if not can(*own, "mount", "-t", "tmpfs", "none", str(root)):
        pytest.skip("the kernel gives no mount namespace")
    arguments = (str(root), str(copy), str(locks[0].parent))
    prefix = (*own, "sh", "-c", f"{fresh_root()}\n{enter}", "sh", *arguments)
    inside = [Path("/locks") / path.name for path in locks]
    facts = subprocess.run([*prefix, "sh", "-c", "id -u; uname -n; ls /"], capture_output=True, text=True, check=True)
    uid, host, *names = facts.stdout.split()
    assert uid == {"root": "0", "another": str(OTHER_USER)}[user]
    assert host == "fresh"
    assert "etc" not in names

    assert said(inside, prefix=prefix, package=Path("/copy"), cwd=Path("/")) == expected


def interpreters() -> list[tuple[str, str | None]]:
    """Each Python version that penny supports, with a program of that version if there is one here."""
    homes = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin/python"))
    found = []
    for version in OTHER_PYTHONS:
        candidates = [shutil.which(f"python{version}"), f"/usr/bin/python{version}"]
        candidates += [str(path) for path in homes if path.parent.parent.name.startswith(f"{version}.")]
        found.append((version, next((each for each in candidates if each and _is(each, version)), None)))
    return found


def _is(program: str, version: str) -> bool:
    check = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", check], capture_output=True, text=True, check=False, timeout=30)
    except OSError:
        return False
    return done.stdout.strip() == version


@pytest.mark.index
@pytest.mark.parametrize(("version", "program"), interpreters(), ids=OTHER_PYTHONS)
def test_the_python_does_not_count(
    locks: list[Path],
    expected: list[list[str]],
    tmp_path_factory: pytest.TempPathFactory,
    version: str,
    program: str | None,
) -> None:
    """Every Python version that can be had here, with what penny needs installed for it."""
    if program is None:
        pytest.skip(f"there is no Python {version} here")
    from uv import find_uv_bin

    venv = tmp_path_factory.mktemp("python") / version
    subprocess.run([find_uv_bin(), "venv", "-q", "--no-config", "--python", program, str(venv)], check=True)
    python = str(venv / "bin" / "python")
    install = [find_uv_bin(), "pip", "install", "-q", "--python", python, *NEEDED]
    done = subprocess.run(install, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no index that can be reached gives what penny needs: {done.stderr.splitlines()[-1:]}")
    assert said(locks, python=python) == expected
