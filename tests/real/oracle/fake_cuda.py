"""A CUDA platform that answers like a given GPU, on a machine that has none.

``install`` replaces what asks the driver or the device, and nothing that draws a conclusion from
the answer: defaults, backend choice and sizes stay vLLM's own code.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from . import stand_ins

if TYPE_CHECKING:
    from .gpus import FakeGPU

DEVICES = 8
CUDA_VERSION = "13.0"
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": ",".join(str(device) for device in range(DEVICES)),
    "HF_HUB_OFFLINE": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_CONFIGURE_LOGGING": "0",  # the answer keeps the log
    "VLLM_HAS_FLASHINFER_CUBIN": "1",  # FlashInfer's kernels are there, as in vLLM's images
    "VLLM_NO_USAGE_STATS": "1",
}


class _Idle:
    """A stream, event or device: every method does nothing."""

    cuda_stream = 0

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_args: object) -> None:
        pass

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        return lambda *_args, **_kwargs: None


def _always(value: Any) -> Any:
    return lambda *_args, **_kwargs: value


def install(gpu: FakeGPU) -> None:
    """Be a machine with eight of ``gpu``; before vllm is imported, once per process."""
    os.environ.update(ENVIRONMENT)
    stand_ins.install_modules()
    stand_ins.install_operators()
    _answer_for_torch(gpu)
    _answer_for_triton(gpu)
    _answer_for_vllm(gpu)


def _answer_for_torch(gpu: FakeGPU) -> None:
    import torch

    properties = _Idle()
    properties.__dict__.update(
        name=gpu.name,
        major=gpu.capability[0],
        minor=gpu.capability[1],
        total_memory=gpu.total_memory,
        multi_processor_count=gpu.multi_processor_count,
        is_integrated=0,
        warp_size=32,
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=2048,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=gpu.shared_memory_per_block_optin,
        shared_memory_per_multiprocessor=gpu.shared_memory_per_block_optin + 1024,
        uuid="GPU-fake",
    )
    memory = (gpu.total_memory, gpu.total_memory)
    answers = {
        "is_available": True,
        "is_initialized": True,
        "is_current_stream_capturing": False,
        "device_count": DEVICES,
        "current_device": 0,
        "current_device_index": 0,
        "current_accelerator": torch.device("cuda"),
        "get_device_properties": properties,
        "get_device_capability": gpu.capability,
        "get_device_name": gpu.name,
        "mem_get_info": memory,
        "get_memory_info": memory,
        "max_memory_allocated": 0,
        "current_stream": _Idle(),
        "default_stream": _Idle(),
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        "set_device": None,
        "synchronize": None,
        "empty_cache": None,
    }
    for module in (torch.cuda, torch.accelerator):
        for name, value in answers.items():
            if hasattr(module, name):
                setattr(module, name, _always(value))
    torch.cuda.Stream = torch.cuda.Event = torch.cuda.device = torch.cuda.stream = _Idle
    torch.version.cuda = CUDA_VERSION


def _answer_for_triton(gpu: FakeGPU) -> None:
    """A driver that names the target; nothing is compiled or launched."""
    import torch
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    major, minor = gpu.capability
    fake = _Idle()
    fake.__dict__.update(
        get_current_target=_always(GPUTarget("cuda", major * 10 + minor, 32)),
        get_active_torch_device=_always(torch.device("cuda", 0)),
        get_current_device=_always(0),
        get_current_stream=_always(0),
        get_device_interface=_always(torch.cuda),
        is_active=_always(value=True),
        map_python_to_cpp_type=lambda name: name,
    )
    fake.utils = _Idle()
    fake.utils.get_device_properties = _always(
        {
            "max_shared_mem": gpu.shared_memory_per_block_optin,
            "max_num_regs": 65536,
            "multiprocessor_count": gpu.multi_processor_count,
            "warpSize": 32,
        }
    )
    driver.set_active(fake)


def _answer_for_vllm(gpu: FakeGPU) -> None:
    import torch
    import vllm.platforms
    from vllm.utils import platform_utils

    properties = torch.cuda.get_device_properties()
    platform_utils.cuda_get_device_properties = lambda _device, names, **_kwargs: tuple(
        getattr(properties, name) for name in names
    )
    from vllm.platforms import cuda
    from vllm.platforms.interface import DeviceCapability

    answers = {
        "get_device_capability": DeviceCapability(*gpu.capability),
        "get_device_name": gpu.name,
        "get_device_uuid": "GPU-fake",
        "get_device_total_memory": gpu.total_memory,
        "get_device_numa_node": 0,
        "get_all_device_numa_nodes": [0] * DEVICES,
        "is_fully_connected": True,
        "is_integrated_gpu": False,
        "num_compute_units": gpu.multi_processor_count,
    }
    fakes = {name: classmethod(_always(value)) for name, value in answers.items()}
    cuda._cuda_device_count_stateless = _always(DEVICES)
    cuda.CudaPlatform = type("FakeCudaPlatform", (cuda.CudaPlatformBase,), fakes)
    vllm.platforms._current_platform = cuda.CudaPlatform()
    # The CPU wheel switches Triton off by its version's suffix.
    vllm.platforms.vllm_version_matches_substr = _always(value=False)

    # The CPU wheel leaves out FlashAttention 4, which vLLM looks for by its file.
    from vllm.vllm_flash_attn import flash_attn_interface

    flash_attn_interface.FA4_AVAILABLE = True

    # vLLM looks at model classes in a subprocess, which would not see these answers.
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda function: function()


def meta_device(*, values: bool = False) -> Any:
    """A torch function mode that puts on the meta device what is meant for the GPU.

    Args:
        values: let reading a value of a tensor that has none give 1 (False as a condition), which
            transforms of quantized weights do; otherwise it raises, as PyTorch does.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    ones: dict[str, Any] = {"__bool__": False, "__float__": 1.0, "__int__": 1, "__index__": 1}
    ones["item"] = 1.0

    def to_meta(value: Any) -> Any:
        named = isinstance(value, (str, torch.device)) and str(value).startswith("cuda")
        return torch.device("meta") if named else value

    class OnMeta(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            name = getattr(func, "__name__", "")
            if isinstance(kwargs.get("device"), int):
                kwargs["device"] = torch.device("meta")
            elif "device" in kwargs:
                kwargs["device"] = to_meta(kwargs["device"])
            if name == "cuda":
                return args[0].to("meta")
            if name == "to":
                args = tuple(to_meta(argument) for argument in args)
            if func is torch.tensor and isinstance(args[0], (int, float)):
                kwargs["device"] = torch.device("cpu")  # constants that models read while built
            if values and args and isinstance(args[0], torch.Tensor) and args[0].is_meta:
                if name in ones:
                    return ones[name]
                if name == "tolist":
                    return [1.0] * args[0].numel()
            return func(*args, **kwargs)

    return OnMeta()
