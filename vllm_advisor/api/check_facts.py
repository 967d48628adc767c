"""What is known of a server under check: its vLLM version, model, GPU, settings and figures.

Options of the call win, then what the source says, then a default that is told. Each thing is
looked up once for all servers of a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vllm_advisor.api.models import find_model
from vllm_advisor.api.runner import served_model
from vllm_advisor.api.settings import resolve_settings
from vllm_advisor.errors import AdvisorError, InputError, UnknownFactError
from vllm_advisor.knowledge.engine_tables import known_versions
from vllm_advisor.knowledge.engines import load_engine
from vllm_advisor.knowledge.gpus import find_gpu
from vllm_advisor.knowledge.overheads import load_overheads
from vllm_advisor.parse.deployed import Deployed, ServedInstance
from vllm_advisor.parse.images import Image
from vllm_advisor.rules.protocol import Subject
from vllm_advisor.sizing.instance import size_instance
from vllm_advisor.sizing.settings import InstanceSettings
from vllm_advisor.types.accelerator import Accelerator, Interconnect, Node
from vllm_advisor.types.engine import EngineFacts, Overheads
from vllm_advisor.types.model import ModelFacts
from vllm_advisor.types.sizing import InstanceFigures
from vllm_advisor.types.source import Source, SourceKind
from vllm_advisor.units import ceil_div

if TYPE_CHECKING:
    from vllm_advisor.knowledge.calibrations import MemoryFile

_RANKS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "prefill_context_parallel_size",
    "data_parallel_size",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The options of the call."""

    gpu: str | Accelerator | None = None
    gpu_count: int | None = None
    node_count: int | None = None
    model_config: str | ModelFacts | None = None
    vllm_version: str | None = None
    memory: tuple[MemoryFile, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sized:
    settings: InstanceSettings | None = None
    figures: InstanceFigures | None = None
    error: AdvisorError | None = None
    overheads: Overheads | None = None


@dataclass(slots=True)
class FactFinder:
    """Finds facts, and remembers what it found.

    Raises:
        InputError, UnknownFactError: the version or the GPU that an option names is not known.
    """

    given: Given
    _engines: dict[str, EngineFacts] = field(default_factory=dict)
    _models: dict[str, ModelFacts | AdvisorError] = field(default_factory=dict)
    _gpus: dict[str, Accelerator | UnknownFactError] = field(default_factory=dict)
    _sized: dict[tuple[str, ...], _Sized] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _engine(self.given.vllm_version)
        if isinstance(self.given.gpu, str):
            find_gpu(self.given.gpu)

    def engine_of(self, image: Image | None) -> EngineFacts:
        """The facts of the version that runs in an image."""
        return self._engine(image.version if image else "")

    def subject(self, deployed: Deployed, instance: ServedInstance) -> Subject:
        """Everything the rules need to know of one server."""
        missing: dict[str, str] = {}
        engine = self._engine(instance.vllm_version.value if instance.vllm_version else "")
        node = self._node(instance, missing)
        model = self._model(instance, missing)
        sized = _Sized()
        if model is not None and node is not None:
            sized, node = self._size(instance, engine, model, node)
        return Subject(
            command=instance.command,
            engine=engine,
            model=model,
            node=node,
            settings=sized.settings,
            figures=sized.figures,
            sizing_error=sized.error,
            overheads=sized.overheads,
            missing=missing,
            instance=instance,
            deployed=deployed,
        )

    def version_source(self, instance: ServedInstance) -> str:
        """Where the version of :meth:`subject` comes from."""
        if self.given.vllm_version:
            return "--vllm-version"
        if instance.vllm_version is not None:
            return str(instance.vllm_version.location)
        return "newest known: no version is stated"

    def _engine(self, stated: str) -> EngineFacts:
        version = self.given.vllm_version or stated
        if version not in self._engines:
            self._engines[version] = _engine(version)
        return self._engines[version]

    def _model(self, instance: ServedInstance, missing: dict[str, str]) -> ModelFacts | None:
        command = instance.command
        if isinstance(self.given.model_config, ModelFacts):
            return self.given.model_config
        name = self.given.model_config or command.model
        if not self.given.model_config:
            if any(u.dest == "model" for u in command.unresolved):
                return None  # the subject says why
            if not name:
                missing["model"] = "the source does not name the model; give --model-config"
                return None
        if name not in self._models:
            try:
                self._models[name] = find_model(name)
            except (UnknownFactError, InputError) as error:
                self._models[name] = error
        found = self._models[name]
        if isinstance(found, AdvisorError):
            missing["model"] = f"{found.what}; give --model-config"
            return None
        return found

    def _node(self, instance: ServedInstance, missing: dict[str, str]) -> Node | None:
        accelerator, source = self._accelerator(instance, missing)
        if accelerator is None:
            return None
        nodes = self.given.node_count or (instance.nodes.value if instance.nodes else 1)
        return Node(
            accelerator=accelerator,
            gpu_count=max(1, self.given.gpu_count or _gpu_count(instance, nodes)),
            node_count=max(1, nodes),
            interconnect=Interconnect.NVLINK if accelerator.nvlink_bandwidth else Interconnect.PCIE,
            source=source,
        )

    def _accelerator(
        self, instance: ServedInstance, missing: dict[str, str]
    ) -> tuple[Accelerator | None, Source]:
        if self.given.gpu is not None:
            gpu = self.given.gpu
            found_gpu = find_gpu(gpu) if isinstance(gpu, str) else gpu
            return found_gpu, Source(SourceKind.USER, "--gpu")
        nowhere = Source(SourceKind.USER, str(instance.location))
        if not instance.gpu_names:
            missing["accelerator"] = "the GPU is not known; give --gpu"
            return None, nowhere
        found = [self._gpu(name.value) for name in instance.gpu_names]
        unknown = next((one for one in found if isinstance(one, UnknownFactError)), None)
        known = {one.id: one for one in found if isinstance(one, Accelerator)}
        if unknown is not None:
            missing["accelerator"] = f"{unknown.what}; give --gpu"
            return None, nowhere
        if len(known) > 1:
            missing["accelerator"] = f"it may be any of {', '.join(sorted(known))}; give --gpu"
            return None, nowhere
        place = instance.gpu_names[0].location
        return next(iter(known.values())), Source(SourceKind.USER, str(place))

    def _gpu(self, name: str) -> Accelerator | UnknownFactError:
        if name not in self._gpus:
            try:
                self._gpus[name] = find_gpu(name)
            except UnknownFactError as error:
                self._gpus[name] = error
        return self._gpus[name]

    def _size(
        self, instance: ServedInstance, engine: EngineFacts, model: ModelFacts, node: Node
    ) -> tuple[_Sized, Node]:
        overheads = load_overheads(engine.version_used or engine.version)
        if self.given.memory:
            from vllm_advisor.api.applied_calibration import with_calibration  # noqa: PLC0415

            server = with_calibration(self.given.memory, model, engine, overheads, node.accelerator)
            overheads, node = server.overheads, replace(node, accelerator=server.accelerator)
        args = instance.command.engine_args.as_dict()
        key = (model.model_id, engine.version, node.accelerator.id, repr(sorted(args.items())))
        if key not in self._sized:
            self._sized[key] = _size(args, engine, model, node, overheads)
        return self._sized[key], node


def _size(
    args: dict[str, object],
    engine: EngineFacts,
    model: ModelFacts,
    node: Node,
    overheads: Overheads,
) -> _Sized:
    settings = None
    try:
        served = served_model(model, args)
        # Too long a context is the business of a rule, which knows the override.
        settings = resolve_settings(
            served, engine, node.accelerator, args, allow_long=True
        ).settings
        figures = size_instance(served, settings, accelerator=node.accelerator, overheads=overheads)
    except AdvisorError as error:
        return _Sized(settings=settings, error=error, overheads=overheads)
    return _Sized(settings=settings, figures=figures, overheads=overheads)


def _engine(version: str | None) -> EngineFacts:
    """Facts of a version, the newest unless one is named; of one that is too old, the oldest known.

    Most faults are none of the version's: who runs an old one hears of them with less confidence.
    """
    if not version:
        return load_engine()
    try:
        return load_engine(version)
    except UnknownFactError:
        oldest = known_versions()[0]
        return replace(load_engine(oldest), version=version, known=False, version_used=oldest)


def _gpu_count(instance: ServedInstance, nodes: int) -> int:
    """GPUs of a node: as stated; what the command needs where a container does not say; else 1."""
    if instance.gpus is not None:
        return instance.gpus.value
    if instance.container is None:
        return 1
    needed = 1
    for size in _sizes(instance):
        needed *= size
    return ceil_div(needed, max(1, nodes))


def _sizes(instance: ServedInstance) -> Iterator[int]:
    for dest in _RANKS:
        value = instance.command.engine_args.get(dest, 1)
        yield value if isinstance(value, int) and value > 0 else 1
