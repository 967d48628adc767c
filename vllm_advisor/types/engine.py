"""One vLLM version, and the arguments an instance of it is started with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vllm_advisor.types.decision import Decision, Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One ``vllm serve`` flag as the real parser has it.

    ``spellings`` set a value (or true); ``negations`` set false. ``kind`` is ``bool``, ``int``,
    ``float``, ``str``, ``json`` or ``tokens`` (an int that takes 32k / 32K). ``nargs`` is the
    parser's: ``None`` for one value, ``*``, ``+`` or ``?`` otherwise.
    """

    dest: str
    spellings: tuple[str, ...]
    negations: tuple[str, ...] = ()
    kind: str = "str"
    nargs: str | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    deprecated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDefaults:
    """Scheduler defaults of ``vllm serve`` on one class of device."""

    max_num_batched_tokens: int
    max_num_seqs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What one vLLM version knows and takes for granted."""

    version: str
    flags: Mapping[str, Flag]  # by dest
    gpu_memory_utilization: float
    block_size: int
    async_scheduling: bool
    source: str  # where the flags were read
    known: bool = True  # False: newer than the newest known, facts are of ``version_used``
    version_used: str = ""

    def flag(self, spelling: str) -> Flag | None:
        """The flag an option string belongs to, or ``None``."""
        for flag in self.flags.values():
            if spelling in flag.spellings or spelling in flag.negations:
                return flag
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArg:
    """One argument: vLLM's dest name, its value and where it comes from."""

    dest: str
    value: Any
    origin: Decision | Location = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineArgs:
    """The arguments of one instance; equality looks at dests and values, not at origins."""

    model: str
    args: tuple[EngineArg, ...] = ()
    model_origin: Decision | Location | None = field(default=None, compare=False)

    @classmethod
    def from_decisions(cls, model: Decision, decisions: tuple[Decision, ...]) -> EngineArgs:
        """The only way a plan makes arguments: no reason, no flag.

        Raises:
            ValueError: two decisions set the same flag.
        """
        flags = [d for d in decisions if d.dest is not None]
        dests = [d.dest for d in flags]
        if len(set(dests)) != len(dests):
            raise ValueError(f"two decisions for one flag: {sorted(dests, key=str)}")
        args = tuple(EngineArg(dest=d.dest or "", value=d.value, origin=d) for d in flags)
        return cls(model=str(model.value), args=args, model_origin=model)

    def __iter__(self) -> Iterator[EngineArg]:
        return iter(self.args)

    def get(self, dest: str, default: Any = None) -> Any:
        """Value of a flag, or ``default`` when it is not given."""
        for arg in self.args:
            if arg.dest == dest:
                return arg.value
        return default

    def as_dict(self) -> dict[str, Any]:
        """``{dest: value}`` in the order given."""
        return {arg.dest: arg.value for arg in self.args}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionChoice:
    """The attention backend vLLM selects, and the cache block size that follows from it."""

    backend: str
    block_size: int
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Memory beside weights and cache, fitted to start-up logs of one family of versions.

    activations = ``logits_factor`` x rows x vocabulary x 4 B + ``hidden_factor`` x
    max_num_batched_tokens x hidden_size x 2 B + ``constant_bytes`` (+ ``moe_bytes``,
    ``multimodal_bytes``), rows = min(max_num_seqs, max_num_batched_tokens).
    cuda_graphs = (``graph_base_bytes`` + ``graph_layer_bytes`` x layers + ``graph_moe_bytes``) x
    captured sizes / ``graph_reference_sizes``.
    ``graphs_set_aside`` is False where vLLM did not subtract them from the KV cache.
    ``error_bytes`` is the largest miss of activations over the ``sample`` logs.
    """

    versions: str
    logits_factor: float
    hidden_factor: float
    constant_bytes: int
    moe_bytes: int
    multimodal_bytes: int
    non_torch_bytes: int  # one GPU
    non_torch_parallel_bytes: int  # more than one rank: NCCL and custom all-reduce buffers
    graph_base_bytes: int
    graph_layer_bytes: int
    graph_moe_bytes: int
    graph_reference_sizes: int
    graphs_set_aside: bool
    sample: int
    error_bytes: int
    source: str
