"""One vLLM version, and the arguments an instance of it is started with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from vllm_advisor.types.decision import Decision, Location
from vllm_advisor.types.memory_calibration import MemoryCalibration

THIN_SAMPLE = 8  # logs; a family with fewer lowers confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One ``vllm serve`` flag as the real parser has it.

    ``spellings`` set a value (or true); ``negations`` set false. ``kind`` is what its value is read
    as: ``bool``, ``int``, ``float``, ``str``, ``tokens`` (an int that takes 32k / 32K),
    ``tokens_or_auto``, ``json``, ``json_or_text`` (what is no ``{...}`` stays text),
    ``json_or_level`` (0 to 3, too), ``json_or_pairs`` and ``pairs`` (``a=1,b=2``); ``None`` where
    that is not recorded. ``nargs`` is the parser's: ``None`` for one value, ``*``, ``+`` or ``?``
    otherwise; a ``bool`` with one takes ``true`` or ``false``.
    """

    dest: str
    spellings: tuple[str, ...]
    negations: tuple[str, ...] = ()
    kind: str | None = "str"
    nargs: str | None = None
    choices: tuple[str, ...] = ()
    default: Any = None
    deprecated: str | None = None

    @property
    def takes_object(self) -> bool:
        """Whether its value may be a JSON object."""
        return self.kind is not None and self.kind.startswith("json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsing:
    """What a version does with the words before they are looked up among its flags.

    ``dotted_keys``: ``--flag.key VALUE`` is no flag (``none``), or a key of a JSON object whose
    value is text, or JSON. ``number_suffixes``: 80m and 4K are numbers inside of JSON. ``short_o``
    is what ``-O3`` stands for: ``-O 3`` (``word``), ``-O.level=3`` (``level``), ``-O.mode=3``
    (``mode``), ``--optimization-level=3`` (``flag``; ``dotted``: and ``-O.key`` is ``-cc.key``).
    ``model_flag``: ``--model`` is taken after ``vllm serve``. ``name_needs_model``:
    ``--served-model-name`` is refused without a model before it.
    """

    dotted_keys: Literal["none", "text", "json"] = "json"
    number_suffixes: bool = True
    short_o: Literal["word", "level", "mode", "dotted", "flag"] = "flag"
    model_flag: bool = True
    name_needs_model: bool = True


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
    parsing: Parsing = Parsing()
    gpu_memory_utilization: float
    block_size: int
    async_scheduling: bool
    gdn_prefill_checkpoint: bool = True  # FlashInfer's prefill keeps one more state per request
    image_uid: int | None = None  # the user that the official image is made for, beside root
    kv_connectors: Mapping[str, str] = field(default_factory=dict)  # take groups: yes, no, ...
    tower_on_first_stage: bool = True  # under pipeline parallelism; else on every stage
    float_cache_is_models: bool = True  # a 16-bit cache of another dtype is refused
    sparse_pcp_graphs: bool = True  # CUDA graphs of sparse MLA under prefill context parallelism
    synchronous_drafting: tuple[str, ...] = ()  # methods and keys without overlapping batches
    draft_shares_embedding: bool = True  # MTP layers that can, on a later pipeline stage, too
    draft_lookahead_in_batch: bool = True  # a batch holds more than a draft writes ahead
    layout_checked: bool = True  # figures of the KV cache were compared with the version's own
    carried: tuple[str, ...] = ()  # facts that are recorded for newer versions only
    source: str  # where the flags were read
    known: bool = True  # False: the version is not recorded, facts are of ``version_used``
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
    sparse_format: int | None = None  # bytes per token of the backend's own FP8 latent
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """Memory beside weights and cache, fitted to start-up logs of one family of versions.

    The terms and their formulas are in ``sizing/overhead.py``; what was fitted, on which logs and
    how well is in ``profiles/memory/overheads.yaml``. Factors without a unit multiply the bytes of
    the tensor they are named after. ``graphs_set_aside`` is False where vLLM captured CUDA graphs
    beyond its budget instead of taking them from the KV cache.

    ``sample`` counts the logs of this family that could be compared, ``error_bytes`` is what KV
    cache bytes predicted from logged weights miss at most on nine of ten of them. ``measured`` is
    what a log of one's own server says; budgets take it wherever it holds.
    """

    versions: str
    logits_factor: float  # FP32 logits of max_num_seqs rows, while the sampler runs
    hidden_factor: float  # hidden states of max_num_batched_tokens tokens, kept beside the sampler
    forward_hidden_factor: float  # the same, while the widest layer runs
    constant_bytes: int
    moe_workspace: bool  # the experts' scratch is kept between layers
    multimodal_bytes: int
    sparse_bytes_per_token: int  # sparse attention, per batched token
    sampler_state_factor: float  # FP32 logits' size kept for penalties
    non_torch_bytes: int  # one GPU
    non_torch_pipeline_bytes: int  # pipeline stages of one GPU each
    non_torch_pcie_bytes: int  # tensor parallel over PCIe
    non_torch_nvlink_bytes: int  # tensor parallel over NVLink
    non_torch_unified_bytes: int  # tensor parallel over nodes with unified memory
    graph_base_bytes: int
    graph_layer_bytes: int  # per layer, for ``graph_reference_sizes`` captured sizes
    graph_latent_bytes: int
    graph_reference_sizes: int
    graph_actual_share: float  # what capture took of what was set aside for it
    graphs_set_aside: bool
    sample: int
    error_bytes: int
    source: str
    measured: MemoryCalibration | None = None

    @property
    def thin(self) -> bool:
        """Too few logs of this family to trust the constants: they are carried over, not fitted."""
        return self.sample < THIN_SAMPLE
