"""Fetches that build files ask for are found by file, line and revision."""

from pathlib import Path

from reproducer.build.moving import fetches

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def told(tree: Path, **files: str) -> list[str]:
    """What is found in a tree with these files; `__` stands for a dot, `_s_` for a slash."""
    for name, text in files.items():
        path = tree / name.replace("__", ".").replace("_s_", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(each) for each in fetches(tree)]


def test_cmake(tmp_path: Path) -> None:
    """A branch and no revision may move, a full commit does not; comments and files of the tree do not count."""
    found = told(
        tmp_path,
        cmake_s_deps__cmake=(
            "FetchContent_Declare(a\n  GIT_REPOSITORY https://example.org/a.git\n  GIT_TAG main)\n"
            f"ExternalProject_Add(b GIT_REPOSITORY https://example.org/b.git GIT_TAG {COMMIT})\n"
            "# GIT_REPOSITORY https://example.org/c.git\n"
            "FetchContent_Declare(d URL ${CMAKE_SOURCE_DIR}/d.tar.gz)\n"
            "FetchContent_Declare(e URL https://example.org/e.tar.gz)\n"
            "FetchContent_Declare(f GIT_REPOSITORY https://example.org/f.git)\n"
        ),
    )
    assert found == [
        "'cmake/deps.cmake', line 2: 'https://example.org/a.git' at 'main', which may move",
        f"'cmake/deps.cmake', line 4: 'https://example.org/b.git' at '{COMMIT}'",
        "'cmake/deps.cmake', line 7: 'https://example.org/e.tar.gz', which may move",
        "'cmake/deps.cmake', line 8: 'https://example.org/f.git', which may move",
    ]


def test_others(tmp_path: Path) -> None:
    """Wraps of Meson, requirements at a git address and `git clone` in a setup script."""
    found = told(
        tmp_path,
        subprojects_s_x__wrap="[wrap-git]\nurl = https://example.org/x.git\nrevision = master\n",
        pyproject__toml='requires = ["k @ git+https://example.org/k@v1"]\n',
        setup__py='run(["git", "clone", "https://example.org/z"])\n',
    )
    assert found == [
        "'pyproject.toml', line 1: 'git+https://example.org/k@v1', which may move",
        '\'setup.py\', line 1: \'run(["git", "clone", "https://example.org/z"])\', which may move',
        "'subprojects/x.wrap', line 2: 'https://example.org/x.git' at 'master', which may move",
    ]


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A build file that is a link is not read, and a tree without fetches has none."""
    (tmp_path / "outside.cmake").write_text("GIT_REPOSITORY https://example.org/a.git\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "CMakeLists.txt").symlink_to(tmp_path / "outside.cmake")
    assert fetches(tmp_path / "tree") == ()
    assert len(fetches(tmp_path)) == 1
