"""Values that only the machine decides are the same for everything that one namespace holds."""

import os
from pathlib import Path

import pytest

from reproducer.errors import ConfigurationError
from reproducer.identity.resolved import FILE, agree


def test_the_first_server_decides(tmp_path: Path) -> None:
    """What the first one came to is written down; the same again is fine, and a value seen later is added."""
    agree(tmp_path, {"attention_backend": "fa3", "moe_runner_backend": "auto"})
    before = (tmp_path / FILE).read_bytes()
    agree(tmp_path, {"attention_backend": "fa3"})
    assert (tmp_path / FILE).read_bytes() == before
    assert b"auto" not in before

    agree(tmp_path, {"attention_backend": "fa3", "moe_runner_backend": "triton"})
    with pytest.raises(ConfigurationError, match="moe_runner_backend: 'triton' then, 'cutlass' now"):
        agree(tmp_path, {"moe_runner_backend": "cutlass"})


@pytest.mark.parametrize(("other", "told"), [("triton", "'triton'"), (3, "3"), (True, "true")])
def test_another_machine_is_refused(tmp_path: Path, other: str | int, told: str) -> None:
    """Another backend is named with both values, and the file stays as it was."""
    agree(tmp_path, {"attention_backend": "fa3"})
    before = (tmp_path / FILE).read_bytes()

    with pytest.raises(ConfigurationError, match=f"attention_backend: 'fa3' then, {told} now"):
        agree(tmp_path, {"attention_backend": other, "kv_cache_dtype": "bfloat16"})
    assert (tmp_path / FILE).read_bytes() == before


def test_types_count(tmp_path: Path) -> None:
    """True is not 1."""
    agree(tmp_path, {"page_size": 1})
    with pytest.raises(ConfigurationError, match="1 then, true now"):
        agree(tmp_path, {"page_size": True})


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"format": "penny-resolved/2", "values": {}}', b"\xff", b" " * 70_000]
)
def test_a_file_that_cannot_be_read_closes_the_namespace(tmp_path: Path, text: bytes) -> None:
    """Cut short, edited, of another format or too large: nothing is served and nothing is changed."""
    (tmp_path / FILE).write_bytes(text)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        agree(tmp_path, {"page_size": 1})
    assert (tmp_path / FILE).read_bytes() == text


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    """A link is not followed, and a pipe that nobody writes to is not waited for."""
    agree(tmp_path, {"page_size": 1})
    (tmp_path / FILE).rename(tmp_path / "elsewhere.json")
    (tmp_path / FILE).symlink_to("elsewhere.json")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        agree(tmp_path, {"page_size": 1})

    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(ConfigurationError, match="is no regular file"):
        agree(tmp_path, {"page_size": 1})
