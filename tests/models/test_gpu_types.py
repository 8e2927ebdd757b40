"""GPU types by the names that other systems give them."""

from __future__ import annotations

import pytest

from maat.models.gpu_types import GPU_TYPES, is_slice, known_gpu_type


@pytest.mark.parametrize(
    "name",
    [
        *("1g.5gb", "a100_1g.5gb", "nvidia_a100_3g.20gb", "h100-1g.10gb", "a100_3g20gb", "1g5gb"),
        *("nvidia_h100_80gb_hbm3_1g.10gb", "1c.3g.20gb", "MIG 2g.10gb", "a100-mig", "3g.40gb+me"),
        *("NVIDIA H100L-2-24C", "nvidia_h100l-2-24c", "GRID T4-8Q", "grid_a100-40c", "A16-2Q"),
        *("A100D-4-20C", "A100-1-5CME", "P40-1B4", "V100DX-16Q", "L40S-48A", "a100-vgpu"),
        *("NVIDIA-A100-SXM4-80GB-SHARED", "a100_slice"),
    ],
)
def test_a_slice_of_a_gpu_is_no_known_type(name: str) -> None:
    assert is_slice(name)
    assert known_gpu_type(name) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("nvidia_a100-pcie-40gb", "a100"),
        ("nvidia_h100_80gb_hbm3", "h100"),
        ("H100L", "h100"),
        ("Tesla V100-SXM2-32GB", "v100"),
        ("v100_32g", "v100"),
        ("geforce_rtx_2080_ti", "rtx"),
        ("NVIDIA A10", "a10"),
        ("l40s", "l40s"),
        ("Tesla T4", "t4"),
        ("t4", "t4"),
        ("rtx_a6000", None),
        ("titan", None),
    ],
)
def test_a_whole_gpu_is_known_by_its_name(name: str, known: str | None) -> None:
    assert not is_slice(name)
    assert known_gpu_type(name) == known


@pytest.mark.parametrize("name", GPU_TYPES)
def test_every_type_is_known_by_its_own_name(name: str) -> None:
    assert known_gpu_type(name) == name
