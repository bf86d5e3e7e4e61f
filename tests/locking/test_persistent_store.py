"""A lock says where the engine keeps its pages: in the namespace."""

from typing import Any

import pytest

from reproducer.errors import InvalidDocumentError

VARIABLE = "SGLANG_HICACHE_NIXL_BACKEND_STORAGE_DIR"
ON = 'page-size = 16\nhicache-storage-backend = "nixl"'


def test_folder_that_the_manifest_leaves_out(project: Any) -> None:
    """The lock names the folder although the manifest does not; naming it changes nothing."""
    project.edit("page-size = 16", ON)
    locked = project.lock(accepted=True).document
    assert locked.launch.environment == {"KV": "{namespace}", VARIABLE: "{namespace}"}
    project.edit('KV = "{namespace}"', f'KV = "{{namespace}}"\n{VARIABLE} = "{{namespace}}"')
    assert project.lock(accepted=True).document == locked


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('KV = "{namespace}"', f'KV = "x"\n{VARIABLE} = "hicache"', f"environment.{VARIABLE}: .*'hicache'.* outside"),
        ('"nixl"', '"mooncake"', "arguments.hicache-storage-backend: .*'mooncake'.*use nixl or file"),
    ],
)
def test_store_elsewhere_is_no_lock(project: Any, before: str, after: str, said: str) -> None:
    """The error names the manifest, the key and what to write."""
    project.edit("page-size = 16", ON)
    project.edit(before, after)
    with pytest.raises(InvalidDocumentError, match=f"(?is)manifest.*, key launch.{said}"):
        project.lock(accepted=True)
