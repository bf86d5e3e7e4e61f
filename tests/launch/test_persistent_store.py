"""No server is started whose persistent store does not lie in the namespace."""

from typing import TYPE_CHECKING, Any

import pytest

from reproducer.errors import InvalidDocumentError, NotCheckedError, UnsafeInputError
from reproducer.identity.root import pages_of
from reproducer.launch.plan import plan
from tests.launch.conftest import ARGUMENTS, Bench

if TYPE_CHECKING:
    from pathlib import Path

NIXL = "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"
FILE = "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"


def storing(backend: str = "nixl", **environment: str) -> dict[str, Any]:
    """A launch with a storage, for the stand-in."""
    variables = {"STAND_IN": "", "STAND_IN_NAMESPACE": "{namespace}", **environment}
    return {"arguments": {**ARGUMENTS, "hicache-storage-backend": backend}, "environment": variables}


@pytest.mark.parametrize(("backend", "variable"), [("nixl", NIXL), ("file", FILE)])
def test_server_gets_the_folder_that_the_lock_leaves_out(bench: Bench, backend: str, variable: str) -> None:
    """The server is told the namespace; the receipt has the placeholder and no path of this machine."""
    with bench.run(**storing(backend)) as server:
        assert bench.seen()["environment"][variable] == str(bench.pages)
    assert server.receipt.environment[variable] == "{namespace}"
    assert list(server.receipt.environment) == sorted(server.receipt.environment)


@pytest.mark.parametrize("text", ["{namespace}", "{namespace}/x"])
def test_server_gets_the_folder_of_the_lock(bench: Bench, text: str) -> None:
    """A folder in the namespace reaches the server as the lock says."""
    with bench.run(**storing(**{NIXL: text})) as server:
        assert bench.seen()["environment"][NIXL] == text.replace("{namespace}", str(bench.pages))
    assert server.receipt.environment[NIXL] == text


@pytest.mark.parametrize(
    "launch",
    [
        storing(**{NIXL: "hicache"}),
        storing(**{NIXL: ""}),
        storing("file", **{FILE: "{namespace}/../x"}),
        storing("mooncake"),
    ],
)
def test_nothing_starts_with_a_store_elsewhere(bench: Bench, launch: dict[str, Any]) -> None:
    """Refused before anything runs or is written."""
    with pytest.raises(InvalidDocumentError), bench.run(**launch):
        pytest.fail("it started")
    assert list(bench.pages.iterdir()) == []
    assert not bench.log.exists()


def test_link_out_of_the_namespace(bench: Bench, tmp_path: "Path") -> None:
    """A link below the namespace that leads elsewhere is refused; one that stays inside is not."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (bench.pages / "inner").mkdir()
    (bench.pages / "out").symlink_to(elsewhere)
    (bench.pages / "in").symlink_to("inner")
    (bench.pages / "round").symlink_to("round")
    with pytest.raises(UnsafeInputError, match="a link leads the engine's pages out of the namespace"):
        plan(bench.opened(**storing(**{NIXL: "{namespace}/out/x"})), bench.runtime, bench.root)
    for inside in ("in", "in/x", "round"):
        plan(bench.opened(**storing(**{NIXL: f"{{namespace}}/{inside}"})), bench.runtime, bench.root)


def test_path_that_the_engine_would_split(bench: Bench) -> None:
    """SGLang reads a comma as the end of a folder, so a namespace below one would not hold the pages."""
    root = bench.folder / "a,b" / "namespace-000000000000"
    pages_of(root).mkdir(parents=True)
    with pytest.raises(NotCheckedError, match="the path of the namespace holds ,"):
        plan(bench.opened(**storing()), bench.runtime, root)
    plan(bench.opened(**storing("file")), bench.runtime, root)
