"""Stand-ins for what a CUDA build brings along and no decision is made of.

Three kinds: vLLM's compiled extensions (importable, empty), the torch operators they would
register (present, computing nothing), and Python packages of GPU kernels that are not installed
(importable, computing nothing). A package that is installed is used.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any

# Required by the CUDA wheel of vLLM or vendored in it; the CPU wheel has none of them.
GPU_PACKAGES = (
    "arctic_inference",  # suffix trees for speculative decoding, in no wheel of vLLM
    "cuda",
    "cutlass",
    "flashinfer",
    "humming",
    "quack",
    "tilelang",
    "tokenspeed_mla",
    "torchvision",  # transforms of pictures, on the GPU
    "vllm.third_party",
    "vllm.vllm_flash_attn",
)
# Vendored in the CUDA wheel, and of no use without its compiled part.
COMPILED_PACKAGE = "vllm.third_party.deep_gemm"
EXTENSION = re.compile(r"\.(_\w*C|\w+_libtorch|cumem_allocator)$")
OPERATOR_NAMESPACE = re.compile(r"(^|_)C($|_)")
# Answers of pure capability queries, as a build for CUDA 12.8 or newer gives them (argument:
# compute capability as in 90), and of transforms that keep the size.
ANSWERS: dict[str, Callable[..., Any]] = {
    "cutlass_scaled_mm_supports_fp8": lambda capability: capability >= 89,
    "cutlass_scaled_mm_supports_block_fp8": lambda capability: capability >= 90,
    "cutlass_scaled_mm_supports_fp4": lambda capability: capability >= 100,
    "cutlass_group_gemm_supported": lambda capability: 90 <= capability < 110,
    "get_workspace_size": lambda *_args, **_kwargs: 0,
    "get_trtllm_gen_multi_ctas_kv_counter_bytes": lambda *_args, **_kwargs: 0,
    "get_device_sm_count": lambda *_args, **_kwargs: 0,
    "transform_sf_into_required_layout": lambda sf, *_args, **_kwargs: sf,
}
NEEDS_EXTENSION = "needs the compiled extension"
FAKED = re.compile(rf"StandIn|{NEEDS_EXTENSION}|[Mm]eta tensor|register_meta")
shape_functions: dict[str, Callable[..., Any]] = {}
called: set[str] = set()


class StandIn:
    """A name of an absent package: importable, callable, a decorator, a base class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name.rpartition(".")[2]

    def __getattr__(self, key: str) -> StandIn:
        if key.startswith("__"):
            raise AttributeError(key)
        return StandIn(f"{self.name}.{key}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        answer = ANSWERS.get(self.__name__)
        if answer is not None:
            return answer(*args, **kwargs)
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        called.add(self.name)
        return self

    def __fspath__(self) -> str:
        return f"/absent/{self.name}"

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def __getitem__(self, key: Any) -> StandIn:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __repr__(self) -> str:
        return f"<stand-in for {self.name}>"


def _itself(self: StandIn, *_args: Any) -> StandIn:
    return self


# Kernels reckon with constants of their packages, and annotate with "A | B", while imported.
for _operator in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "and", "or", "xor"):
    setattr(StandIn, f"__{_operator}__", _itself)
    setattr(StandIn, f"__r{_operator}__", _itself)


class AbsentOperator:
    """An operator of a compiled extension: there, but only vLLM's own shape function runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name.rpartition("::")[2]

    def __getattr__(self, key: str) -> AbsentOperator:
        if key.startswith("__"):
            raise AttributeError(key)
        return self  # an overload

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = ANSWERS.get(self.__name__) or shape_functions.get(self.name)
        if function is None:
            raise NotImplementedError(f"{self.name} {NEEDS_EXTENSION}")
        called.add(self.name)
        return function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<stand-in for {self.name}>"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsentOperator) and other.name == self.name


class _StandInModule(ModuleType):
    __version__ = "99"  # new enough for whoever asks
    __file__ = "absent"

    def __getattr__(self, key: str) -> StandIn:
        if key.startswith("__"):
            raise AttributeError(key)
        return StandIn(f"{self.__name__}.{key}")


class _StandInLoader(Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


# ruff: noqa: ARG002  (importlib passes a path and a target)
class _ExtensionFinder(MetaPathFinder):
    """Before all others: vLLM's extension modules, whether or not a file for them exists."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("vllm."):
            return None
        if f"{fullname}.".startswith(f"{COMPILED_PACKAGE}."):
            return importlib.machinery.ModuleSpec(fullname, _StandInLoader(), is_package=True)
        found = importlib.machinery.PathFinder.find_spec(fullname, path)
        if found is None:
            compiled = EXTENSION.search(fullname) is not None
        else:
            compiled = isinstance(found.loader, importlib.machinery.ExtensionFileLoader)
        return importlib.machinery.ModuleSpec(fullname, _StandInLoader()) if compiled else None


class _PackageFinder(MetaPathFinder):
    """After all others: packages that are not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parent = sys.modules.get(fullname.rpartition(".")[0])  # may be known by another name
        known = any(f"{fullname}.".startswith(f"{package}.") for package in GPU_PACKAGES)
        if not known and not isinstance(parent, _StandInModule):
            return None
        return importlib.machinery.ModuleSpec(fullname, _StandInLoader(), is_package=True)


def install_modules() -> None:
    """Make extensions and GPU packages importable; before vllm is imported."""
    with suppress(ImportError):  # it looks at the types of "cuda", when there is one
        importlib.import_module("tvm_ffi")
    sys.meta_path.insert(0, _ExtensionFinder())
    sys.meta_path.append(_PackageFinder())


def install_operators() -> None:
    """Make the extensions' operators present in ``torch.ops``; before vllm is imported."""
    import torch

    namespace_type = torch._ops._OpNamespace
    getattr_of_torch = namespace_type.__getattr__

    def find_operator(namespace: Any, key: str) -> Any:
        try:
            return getattr_of_torch(namespace, key)
        except AttributeError:
            if key.startswith("__") or not OPERATOR_NAMESPACE.search(namespace.name):
                raise
            return AbsentOperator(f"{namespace.name}::{key}")

    namespace_type.__getattr__ = find_operator
    register_of_torch = torch.library.register_fake

    def register_fake(op: Any, func: Any = None, /, **kwargs: Any) -> Any:
        name = op if isinstance(op, str) else getattr(op, "name", str(op))
        if not isinstance(name, str) or not OPERATOR_NAMESPACE.search(name.partition("::")[0]):
            return register_of_torch(op, func, **kwargs)

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            shape_functions[name] = function
            return function

        return keep if func is None else keep(func)

    torch.library.register_fake = register_fake


def is_to_blame(text: str) -> bool:
    """An error of stand-ins or of tensors without values, which a real server does not have."""
    return FAKED.search(text) is not None


def taken() -> Iterator[str]:
    """Names of the stand-ins that were called since the last time this was asked."""
    yield from sorted(called)
    called.clear()
