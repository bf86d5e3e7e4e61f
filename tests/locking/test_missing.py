"""What a manifest lacks is one complete list, told before anything is resolved, fetched or built."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reproducer.fetch.indexes import Indexes
from reproducer.locking import lock
from reproducer.locking.facts import Missing, MissingFactsError, RefusedFactsError
from reproducer.progress import Silent
from reproducer.store import Store
from tests.end_to_end.newcomer import ROOT

COMMIT = "8e197ed3afc559f29562a2e7de9026f011f5d28f"
GIT = f"""
[[components]]
name = "moving"
source = {{ kind = "git", url = "https://git.example/a.git", ref = "main" }}

[[components]]
name = "still"
source = {{ kind = "git", url = "https://git.example/a.git", ref = "{COMMIT}" }}

"""
HUB = f"""
[[checkpoints]]
name = "draft"
role = "draft"
source = {{ kind = "hub", repository = "some/model" }}

[[checkpoints]]
name = "tokenizer"
role = "tokenizer"
source = {{ kind = "hub", repository = "some/words", revision = "{COMMIT}", digests = "unknown" }}

"""
NOWHERE = Indexes(index_urls=("http://127.0.0.1:1/simple",), timeout=2)


def facts_of(project: Any, **options: Any) -> tuple[Missing, ...]:
    """What is missing."""
    with pytest.raises(MissingFactsError) as caught:
        project.lock(**options)
    assert caught.value.exit_code == 96
    return caught.value.missing


def keys(missing: tuple[Missing, ...]) -> dict[str, str]:
    """Kind by key."""
    return {each.key: each.kind for each in missing}


def test_every_unknown_is_named_at_once(fresh: Any) -> None:
    """The word anywhere and each entry of the table, with lines, in the order of the file; nothing was asked."""
    fresh.edit('version = ">=1,<2"', 'version = "unknown"')
    fresh.edit('"alpha>=1"', '"alpha==unknown", "unknown"')
    fresh.edit("page-size = 16", 'page-size = "unknown"')
    fresh.edit("[qualification]", '[unknown]\n"launch.arguments" = "there were more"\n\n[qualification]')
    asked = len(fresh.index.asked)
    found = facts_of(fresh, accepted=False)
    assert [each.key for each in found] == [
        "components[0].source.version",
        "environments[0].requirements[0]",
        "environments[0].requirements[1]",
        "launch.arguments.page-size",
        "launch.arguments",
    ]
    assert all(each.needed for each in found)
    lines = fresh.manifest.read_text("utf-8").splitlines()
    assert [lines[(each.line or 0) - 1].split()[0] for each in found] == [
        "source",
        "requirements",
        "requirements",
        "page-size",
        '"launch.arguments"',
    ]
    assert "the version of alpha is unknown" in found[1].why
    assert "there were more" in found[-1].why
    assert len(fresh.index.asked) == asked
    assert not fresh.path.exists()


def test_what_a_lock_may_not_know_is_carried(project: Any) -> None:
    """An unknown compiler and GPU end nothing: the lock says `unknown`, and what it carries is told."""
    project.edit('compiler = "none"', 'compiler = "unknown"')
    project.edit("[engine]", '[hardware]\ngpu = "unknown"\ncount = 1\ncompute_capability = "unknown"\n\n[engine]')
    locked = project.lock()
    assert locked.document.toolchain.compiler == "unknown"
    assert locked.document.hardware.gpu == "unknown"
    assert [(each.key, each.needed) for each in locked.unknown] == [
        ("compiler", False),
        ("hardware.gpu", False),
        ("hardware.compute_capability", False),
    ]


def test_a_table_of_unknowns_names_real_keys(fresh: Any) -> None:
    """An entry below no key of a manifest is a contradiction, with what is near."""
    fresh.edit("[qualification]", '[unknown]\n"lanch.arguments" = "more"\n\n[qualification]')
    with pytest.raises(Exception, match="did you mean 'launch'") as caught:
        fresh.lock()
    assert getattr(caught.value, "exit_code", None) == 2


def test_offline_everything_that_only_others_know(fresh: Any) -> None:
    """Releases, packages, branches, commits and digests of a hub: each with who knows it; nothing is asked."""
    fresh.edit('[[components]]\nname = "kernels"', f'{GIT}[[components]]\nname = "kernels"')
    fresh.edit("[launch]", f"{HUB}[launch]")
    asked = len(fresh.index.asked)
    found = facts_of(fresh, offline=True)
    assert keys(found) == {
        "components[0].source.version": "index",
        "components[1].source.ref": "reference",
        "components[2].source.ref": "repository",
        "environments[0].requirements[0]": "index",
        "environments[0].without_dependencies[0]": "index",
        "environments[1].requirements[0]": "index",
        "checkpoints[0].source.version": "index",
        "checkpoints[1].source.revision": "reference",
        "checkpoints[1].source.repository": "hub",
        "checkpoints[2].source.digests": "unknown",
    }
    assert [each.key for each in found if not each.needed] == ["checkpoints[2].source.digests"]
    assert len(fresh.index.asked) == asked


def test_offline_what_the_lock_has_is_known(project: Any) -> None:
    """A lock that is current is made again without a network, and only what is new to it is missing."""
    project.lock()  # uv has seen the pages of this index then
    assert project.lock(offline=True).reasons == ()
    project.edit('"alpha>=1"', '"alpha>=1", "zeta==3"')
    assert keys(facts_of(project, offline=True, indexes=NOWHERE)) == {"environments[0].requirements[1]": "index"}
    upgraded = keys(facts_of(project, offline=True, indexes=NOWHERE, upgrade=frozenset({"engine"})))
    assert upgraded["components[0].source.version"] == "index"


def test_offline_asks_no_index_for_a_release(project: Any) -> None:
    """A source that the lock lacks is not looked for on a network behind --offline."""
    project.edit('version = ">=1,<2"', 'version = ">=0,<1"')
    asked = len(project.index.asked)
    facts_of(project, offline=True)
    assert len(project.index.asked) == asked


def test_offline_a_folder_of_wheels_knows(fresh: Any) -> None:
    """What lies in a folder that the user's settings name needs no network, so it is not missing."""
    folder = fresh.folder / "wheels"
    folder.mkdir()
    for path in fresh.index.folder.rglob("alpha*.whl"):
        (folder / path.name).write_bytes(path.read_bytes())
    indexes = dataclasses.replace(NOWHERE, find_links=(folder.as_uri(),))
    found = keys(facts_of(fresh, offline=True, indexes=indexes))
    assert "environments[0].requirements[0]" not in found
    assert "environments[1].requirements[0]" in found


def test_what_no_launch_or_lock_can_give_stands_in_the_same_list(fresh: Any) -> None:
    """A preloaded library, an address, a store that no namespace holds, a script that is gone: each with its line."""
    (fresh.folder / "runtime/convert.py").unlink()
    fresh.edit('KV = "{namespace}"', 'KV = "{namespace}"\nLD_PRELOAD = "libjemalloc.so.2"\nPYTHONPATH = "src"')
    fresh.edit('"beta"', '"beta @ https://files.example/beta-1.0-py3-none-any.whl", "beta>>1"')
    fresh.edit('patches = ["runtime/engine', 'variables = { LD_PRELOAD = "x.so" }\npatches = ["runtime/engine')
    fresh.edit("page-size = 16", 'page-size = 16\nhicache-storage-backend = "mooncake"\nenable-lmcache = true')
    fresh.edit("page-size = 16", 'page-size = 16\nserved-model-name = "--x"\ntokenizer-path = "some/words"')
    asked = len(fresh.index.asked)
    found = facts_of(fresh, offline=True)
    assert {each.key: each.kind for each in found if each.kind in ("refused", "file")} == {
        "components[0].variables.LD_PRELOAD": "refused",
        "environments[1].requirements[0]": "refused",
        "environments[1].requirements[1]": "refused",
        "checkpoints[0].conversion.script": "file",
        "launch.arguments.enable-lmcache": "refused",
        "launch.arguments.hicache-storage-backend": "refused",
        "launch.arguments.served-model-name": "refused",
        "launch.arguments.tokenizer-path": "refused",
        "launch.environment.LD_PRELOAD": "refused",
        "launch.environment.PYTHONPATH": "refused",
    }
    assert {each.kind for each in found} == {"refused", "file", "index"}
    lines = fresh.manifest.read_text("utf-8").splitlines()
    for each in found:
        if each.kind == "refused":
            last = each.key.rpartition(".")[2].partition("[")[0]
            assert last in lines[(each.line or 0) - 1], each
    assert len(fresh.index.asked) == asked


def test_what_is_refused_alone_is_no_lack(fresh: Any) -> None:
    """Where nothing is missing the document is wrong and exits 2, with a network too, and before anything is asked."""
    fresh.edit('KV = "{namespace}"', 'KV = "{namespace}"\nLD_PRELOAD = "libjemalloc.so.2"')
    fresh.edit("page-size = 16", 'page-size = 16\nhicache-storage-backend = "mooncake"')
    asked = len(fresh.index.asked)
    with pytest.raises(RefusedFactsError, match="2 things are asked for that no lock or launch gives") as caught:
        fresh.lock()
    assert caught.value.exit_code == 2
    assert keys(caught.value.missing) == {
        "launch.arguments.hicache-storage-backend": "refused",
        "launch.environment.LD_PRELOAD": "refused",
    }
    assert len(fresh.index.asked) == asked


@pytest.mark.parametrize(
    ("name", "key", "why"),
    [
        (
            "qwen38-27b-dflash2-hicache-mooncake",
            "launch.arguments.hicache-storage-backend",
            "'mooncake' cannot be kept in a namespace",
        ),
        (
            "qwen38-27b-dflash2-lmcache",
            "launch.arguments.enable-lmcache",
            "--enable-lmcache cannot be kept",
        ),
    ],
)
def test_launches_that_are_refused_whatever_is_known(name: str, key: str, why: str) -> None:
    """Mooncake and LMCache keep pages where penny cannot follow: that is said beside what is missing."""
    with pytest.raises(MissingFactsError) as caught:
        lock(
            ROOT / f"manifests/{name}.toml",
            ROOT / "none.lock.toml",
            Store(ROOT / "none"),
            indexes=NOWHERE,
            reporter=Silent(),
            offline=True,
        )
    refused = [each for each in caught.value.missing if each.kind == "refused"]
    assert [each.key for each in refused] == [key]
    assert why in refused[0].why
    assert "and 1 thing is asked for that no lock or launch gives" in caught.value.what


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (ROOT / "manifests").glob("*.toml") if not path.name.startswith("smollm2-"))
)
def test_published_manifests_say_what_is_missing(name: str, tmp_path: Path) -> None:
    """Each ends with 96 and the whole list, as text and as JSON, and writes nothing at all."""
    target = tmp_path / "project" / "manifests" / name
    target.parent.mkdir(parents=True)
    target.write_bytes((ROOT / "manifests" / name).read_bytes())
    command = [sys.executable, "-m", "reproducer", "lock", "--offline", f"manifests/{name}", "--store", "../store"]
    ran = subprocess.run([*command, "--json"], cwd=tmp_path / "project", capture_output=True, text=True, check=False)
    result = json.loads(ran.stdout)
    assert ran.returncode == result["exit_code"] == 96, ran.stderr
    assert len(result["reasons"]) == len(result["missing"]) > 10
    lines = target.read_text("utf-8").splitlines()
    for fact in result["missing"]:
        last = fact["key"].rpartition(".")[2].partition("[")[0].strip("\"'")
        line = lines[fact["line"] - 1]
        assert last in line or "unknown" in line or '"' in line, fact
        assert fact["why"]
    shown = subprocess.run(command, cwd=tmp_path / "project", capture_output=True, text=True, check=False)
    assert shown.returncode == 96
    for fact in result["missing"]:
        assert f" {fact['line']} " in shown.stdout
    assert not (tmp_path / "store").exists()
    assert [path.name for path in (tmp_path / "project").iterdir()] == ["manifests"]


def test_the_flagship_lacks_exactly_these() -> None:
    """The runtime that was published: source trees, wheels, what its authors left out, and digests it may carry."""
    with pytest.raises(MissingFactsError) as caught:
        lock(
            ROOT / "manifests/qwen38-27b-dflash2-rtxpro6000.toml",
            ROOT / "none.lock.toml",
            Store(ROOT / "none"),
            indexes=NOWHERE,
            reporter=Silent(),
            offline=True,
        )
    assert keys(caught.value.missing) == {
        "components[0].source.ref": "repository",
        "components[1].source.ref": "repository",
        **{f"environments[0].requirements[{number}]": "index" for number in range(5)},
        "environments[1].requirements[0]": "unknown",
        "checkpoints[0].source.digests": "unknown",
        "checkpoints[1].source.digests": "unknown",
        "environments.runtime.requirements": "unknown",
        "launch.arguments.linear-attention-backend": "unknown",
        "launch.arguments": "unknown",
    }
    assert not (ROOT / "none").exists()
