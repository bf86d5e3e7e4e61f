"""Copies of KV pages between HiCache's host pool and the device pool, both of them host memory here.

Indices are token slots, int64, one per token, in whole pages. A layer buffer is [token, head, dimension]; a
page-first-direct pool is [page, layer, token in page, head, dimension].
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

import torch

Tensors = Sequence[torch.Tensor]


def transfer_kv_direct(
    src_layers: Tensors, dst_layers: Tensors, src_indices: torch.Tensor, dst_indices: torch.Tensor, page_size: int
) -> None:
    """Copy slots between layer buffers of the same shape, layer by layer."""
    del page_size
    for source, destination in zip(src_layers, dst_layers, strict=True):
        destination[dst_indices] = source[src_indices]


def transfer_kv_per_layer_direct_pf_lf(  # noqa: PLR0917  the interface SGLang calls
    src_ptrs: Tensors,
    dst_ptrs: Tensors,
    src_indices: torch.Tensor,
    dst_indices: torch.Tensor,
    layer_id: int,
    page_size: int,
) -> None:
    """Load one layer from page-first pools (keys, values) into its layer buffers."""
    page, offset = src_indices // page_size, src_indices % page_size
    for source, destination in zip(src_ptrs, dst_ptrs, strict=True):
        destination[dst_indices] = source[page, layer_id, offset]


def transfer_kv_all_layer_direct_lf_pf(
    src_ptrs: Tensors, dst_ptrs: Tensors, src_indices: torch.Tensor, dst_indices: torch.Tensor, page_size: int
) -> None:
    """Back up all layers, given as every key buffer and then every value buffer, into page-first pools."""
    page, offset = dst_indices // page_size, dst_indices % page_size
    layers = len(src_ptrs) // len(dst_ptrs)
    for index, source in enumerate(src_ptrs):
        dst_ptrs[index // layers][page, index % layers, offset] = source[src_indices]


def _refused(name: str) -> Callable[..., NoReturn]:
    def refuse(*_args: object, **_options: object) -> NoReturn:
        msg = f"sgl_kernel.kvcacheio.{name} has no CPU form; use --hicache-io-backend direct"
        raise NotImplementedError(msg)

    return refuse


transfer_kv_all_layer = _refused("transfer_kv_all_layer")
transfer_kv_all_layer_lf_pf = _refused("transfer_kv_all_layer_lf_pf")
transfer_kv_all_layer_lf_ph = _refused("transfer_kv_all_layer_lf_ph")
transfer_kv_all_layer_mla = _refused("transfer_kv_all_layer_mla")
transfer_kv_all_layer_mla_lf_pf = _refused("transfer_kv_all_layer_mla_lf_pf")
transfer_kv_per_layer = _refused("transfer_kv_per_layer")
transfer_kv_per_layer_mla = _refused("transfer_kv_per_layer_mla")
transfer_kv_per_layer_mla_pf_lf = _refused("transfer_kv_per_layer_mla_pf_lf")
transfer_kv_per_layer_pf_lf = _refused("transfer_kv_per_layer_pf_lf")
transfer_kv_per_layer_ph_lf = _refused("transfer_kv_per_layer_ph_lf")
