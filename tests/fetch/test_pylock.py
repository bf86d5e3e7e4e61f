"""PEP 751 files beside a lock."""

import platform
import sysconfig
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproducer.errors import InvalidDocumentError, NotCheckedError, PennyError
from reproducer.fetch.pylock import read_pylock, select

SHA = "ab" * 32
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or sysconfig.get_platform() != "linux-x86_64", reason="tags of linux-x86_64"
)


def wheel(name: str, sha256: str = SHA, size: int = 5) -> str:
    """One wheel's table."""
    return f'[[packages.wheels]]\nname = "{name}"\npath = "{name}"\nsize = {size}\nhashes = {{sha256 = "{sha256}"}}\n'


def package(name: str, *wheels: str, extra: str = 'version = "1.0"\n') -> str:
    """One package with its wheels."""
    return f'[[packages]]\nname = "{name}"\n{extra}' + "".join(wheels)


def document(*packages: str, head: str = "") -> str:
    """A whole file."""
    return f'lock-version = "1.0"\ncreated-by = "penny"\n{head}' + "".join(packages)


def names(text: str, python: str = "3.11") -> list[list[str]]:
    """The file names that are selected."""
    chosen = select(read_pylock(text, where="pylock.toml"), python)
    return [[artefact.filename for artefact in choices] for choices in chosen]


def test_the_wheels_that_serve_best_first() -> None:
    """The host's most specific tag first; other Pythons, platforms and C libraries are left out."""
    text = document(
        package(
            "a",
            wheel("a-1.0-py3-none-any.whl"),
            wheel("a-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
            wheel("a-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"),
            wheel("a-1.0-cp311-cp311-macosx_11_0_arm64.whl"),
            wheel("a-1.0-cp38-abi3-manylinux_2_17_x86_64.whl"),
            wheel("a-1.0-cp311-cp311-manylinux_2_5_x86_64.whl"),
            wheel("a-1.0-cp311-cp311-manylinux_2_999_x86_64.whl"),
            wheel("a-1.0-cp311-cp311-musllinux_1_2_x86_64.whl"),
        )
    )
    assert names(text) == [
        [
            "a-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
            "a-1.0-cp311-cp311-manylinux_2_5_x86_64.whl",
            "a-1.0-cp38-abi3-manylinux_2_17_x86_64.whl",
            "a-1.0-py3-none-any.whl",
        ]
    ]
    assert names(text, "3.12")[0][0] == "a-1.0-cp312-cp312-manylinux_2_17_x86_64.whl"


def test_the_more_exact_version_comes_first() -> None:
    """A package that is pinned as a build of its own and as the public one offers both, the own one first."""
    text = document(
        package(
            "torch",
            wheel("torch-2.13.0-cp311-cp311-manylinux_2_5_x86_64.whl"),
            wheel("torch-2.13.0+cpu-cp311-cp311-manylinux_2_5_x86_64.whl"),
            wheel("torch-2.13.0+cpu-1-cp311-cp311-manylinux_2_5_x86_64.whl"),
            extra="",
        )
    )
    assert names(text) == [
        [
            "torch-2.13.0+cpu-1-cp311-cp311-manylinux_2_5_x86_64.whl",
            "torch-2.13.0+cpu-cp311-cp311-manylinux_2_5_x86_64.whl",
            "torch-2.13.0-cp311-cp311-manylinux_2_5_x86_64.whl",
        ]
    ]


def test_artefacts_carry_everything() -> None:
    """Project, version, file name, digest and size."""
    ((artefact,),) = select(read_pylock(document(package("a-b", wheel("A_b-1.0-py3-none-any.whl"))), where="x"))
    assert artefact.model_dump() == {
        "project": "a-b",
        "version": "1.0",
        "filename": "A_b-1.0-py3-none-any.whl",
        "sha256": SHA,
        "size": 5,
    }


def test_every_package_without_a_wheel_is_named_with_its_tags() -> None:
    """One error for all of them, and what this host takes."""
    text = document(
        package("a", wheel("a-1.0-cp312-cp312-win_amd64.whl")),
        package("b", wheel("b-1.0-py3-none-any.whl")),
        package("c", wheel("c-1.0-cp311-cp311-macosx_11_0_arm64.whl")),
    )
    with pytest.raises(NotCheckedError) as caught:
        names(text)
    message = str(caught.value)
    assert "a has cp312-cp312-win_amd64" in message
    assert "c has cp311-cp311-macosx_11_0_arm64" in message
    assert "b has" not in message
    assert "this host takes cp311-cp311-" in message


def test_another_platform_is_not_checked() -> None:
    """A lock for another machine is an error that says so."""
    with pytest.raises(NotCheckedError, match="the lock is for linux-aarch64"):
        select(read_pylock(document(package("a", wheel("a-1.0-py3-none-any.whl"))), where="x"), "3.11", "linux-aarch64")


def test_markers_decide() -> None:
    """Packages for other environments are left out; a package that would stand twice is refused."""
    a, b = wheel("a-1.0-py3-none-any.whl"), wheel("b-1.0-py3-none-any.whl")
    other = 'version = "1.0"\nmarker = "sys_platform == \'win32\'"\n'
    mine = "version = \"1.0\"\nmarker = \"python_version >= '3.11' and platform_machine == 'x86_64'\"\n"
    assert names(document(package("a", a, extra=other), package("b", b, extra=mine))) == [["b-1.0-py3-none-any.whl"]]
    with pytest.raises(InvalidDocumentError, match="stands twice"):
        names(document(package("a", a), package("a", a)))


def test_files_for_other_pythons_or_environments() -> None:
    """What the file says about itself holds."""
    a = package("a", wheel("a-1.0-py3-none-any.whl"))
    assert (
        len(names(document(a, head='requires-python = "==3.11.*"\nenvironments = ["sys_platform == \'linux\'"]\n')))
        == 1
    )
    with pytest.raises(NotCheckedError, match="is for Python"):
        names(document(a, head='requires-python = ">=3.12"\n'))
    with pytest.raises(NotCheckedError, match="another environment"):
        names(document(a, head="environments = [\"sys_platform == 'win32'\"]\n"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = ", "not TOML"),
        ("", "lock-version"),
        ('lock-version = "2.0"\ncreated-by = "x"\npackages = []', "not supported"),
        (document(package("a", wheel("a-1.0-py3-none-any.whl"))).replace("path", "url"), "needs `name`"),
        (document(package("a", wheel("a-1.0-py3-none-any.whl"))).replace('path = "', 'path = "../'), "needs `name`"),
        (document(package("a", wheel("a-1.0-py3-none-any.whl"))).replace("size = 5\n", ""), "needs `size`"),
        (document(package("a", wheel("a-1.0-py3-none-any.whl"))).replace("sha256", "md5"), "sha256"),
        (document(package("a", wheel("a-1.0-py3-none-any.whl", "AB" * 32))), "sha256"),
        (document(package("a", wheel("a-1.0-py3-none-any.whl", size=-1))), "size"),
        (document(package("a", wheel("b-1.0-py3-none-any.whl"))), "not consistent"),
        (document(package("a", wheel("a-1.0-py3-none-any.whl"), wheel("a-1.0-py3-none-any.whl"))), "stands twice"),
        (document(package("a", extra='version = "1.0"\n[packages.directory]\npath = "../x"\n')), "has no wheels"),
        (
            document(package("a", extra='[packages.vcs]\ntype = "git"\nurl = "x"\ncommit-id = "y"\n')),
            "has no wheels",
        ),
        (document(package("a", wheel("a-1.0-py3-none-any.whl"), extra='index = "https://x/"\n')), "index"),
        (document('[[packages]]\nname = "A"\n'), "not normalized"),
        ("a = " + "[" * 5000, "not TOML"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    """Everything that is no PEP 751 file of penny's form, with the reason."""
    with pytest.raises(InvalidDocumentError, match=problem):
        read_pylock(text, where="pylock.toml")


@settings(max_examples=150, deadline=None)
@given(cut=st.integers(0, 400), junk=st.text(max_size=6))
def test_damaged_files_are_errors_of_penny(cut: int, junk: str) -> None:
    """Whatever stands where, the outcome is a result or one of penny's errors."""
    whole = document(package("a", wheel("a-1.0-py3-none-any.whl")), package("b", wheel("b-1.0-py3-none-any.whl")))
    with suppress(PennyError):
        select(read_pylock(whole[:cut] + junk + whole[cut:], where="x"))
