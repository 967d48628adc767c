"""What MXFP4 kernels of gpt-oss make of its experts once they are loaded.

Sources: vllm/model_executor/layers/fused_moe/oracle/mxfp4.py
#convert_gpt_oss_weight_to_mxfp4_moe_kernel_format, vllm/model_executor/layers/quantization/utils
/mxfp4_utils.py#_swizzle_mxfp4, vllm/third_party/triton_kernels/tensor_details/layout_details
/hopper_scale.py.
"""

from __future__ import annotations

from vllm_advisor.units import round_up

HOPPER = range(90, 100)  # Triton's kernels
BLACKWELL = range(100, 110)  # FlashInfer's TRT-LLM kernels
_GROUP = 32  # weights that share a scale
_ROWS = 256  # 2 x 8 warps x 2 x 8
_GROUPS = 4


def bias_bytes(capability: int, dtype_bytes: int) -> int:
    """Bytes of one element of an expert's bias: these two kernels add it in FP32."""
    return 4 if capability in HOPPER or capability in BLACKWELL else dtype_bytes


def kept_scales(capability: int, experts: int, intermediate: int, hidden: int) -> int:
    """Bytes of scales in Triton's own order and padding; those that were loaded stay beside them.

    Args:
        capability: compute capability x 10.
        experts: of one layer on one rank.
        intermediate: a rank's share of an expert's intermediate size, padded.
        hidden: the model's hidden size.
    """
    if capability not in HOPPER:
        return 0

    def scales(rows: int, columns: int) -> int:
        return round_up(rows, _ROWS) * round_up(columns // _GROUP, _GROUPS)

    return experts * (scales(2 * intermediate, hidden) + scales(hidden, intermediate))
