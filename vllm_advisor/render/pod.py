"""The pod of an instance as plain data, for every target that writes pods."""

from __future__ import annotations

from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.argv import flag_words, model_word
from vllm_advisor.render.because import because
from vllm_advisor.render.names import labels, object_name, selector
from vllm_advisor.sizing.pod_resources import PodResources, pod_resources
from vllm_advisor.types.engine import EngineArgs, EngineFacts
from vllm_advisor.types.environment import Environment, GpuAllocation, ModelCache
from vllm_advisor.types.plan import Instance, Plan
from vllm_advisor.types.sizing import Figure
from vllm_advisor.units import GIB, ceil_div

HOME = "/home/vllm"
ENGINE_READY_SECONDS = 600  # default of VLLM_ENGINE_READY_TIMEOUT_S (vllm/envs.py)
PRE_STOP_SECONDS = 15  # until endpoints and routers have forgotten the pod
EXIT_SECONDS = 15  # after the last request
_PROBE_SECONDS = 10
_ROLLOUT_SECONDS = 600  # pulling the image, waiting for a GPU


def nodes_per_replica(plan: Plan, instance: Instance) -> int:
    """Nodes that one replica spans."""
    return ceil_div(instance.gpus, max(1, plan.node.gpu_count))


def is_path(model: str) -> bool:
    """The model is a folder, not an id on the Hub."""
    return model.startswith(("/", "./", "../", "~"))


def image(plan: Plan) -> str:
    """The image with its tag, and its digest where one is given."""
    place = plan.environment
    digest = f"@{place.image_digest}" if place.image_digest else ""
    return f"{image_repository(place)}:{image_tag(plan)}{digest}"


def image_tag(plan: Plan) -> str:
    """The tag of the image: the plan's vLLM version unless one is given."""
    return plan.environment.image_tag or f"v{plan.vllm_version}"


def image_repository(place: Environment) -> str:
    """The image without tag and digest."""
    return f"{place.image_registry}/{place.image}" if place.image_registry else place.image


def port_of(instance: Instance, engine: EngineFacts) -> int:
    """The port that the server of an instance listens on."""
    return int(instance.engine_args.get("port", engine.flags["port"].default))


def served_names(args: EngineArgs) -> list[str]:
    """The names that vLLM answers to; its model's own unless others are given."""
    given = args.get("served_model_name") or [args.model]
    return [str(name) for name in (given if isinstance(given, list | tuple) else [given])]


def common_names(plan: Plan) -> list[str]:
    """The names that every instance of the plan answers to, in the order of the first one."""
    first, *others = (served_names(each.engine_args) for each in plan.deployment.instances)
    return [name for name in first if all(name in each for each in others)]


def resources_of(plan: Plan, instance: Instance, *, fetched_first: bool = False) -> PodResources:
    """What one pod of an instance needs beside its GPUs.

    ``fetched_first`` says that a model of the Hub is in the pod's own disk before vLLM starts.
    """
    place, nodes = plan.environment, nodes_per_replica(plan, instance)
    local = is_path(instance.engine_args.model)
    downloads = not local and not fetched_first
    on_node = fetched_first or place.model_cache is ModelCache.EPHEMERAL
    return pod_resources(
        checkpoint_bytes=int(plan.figure(f"{instance.name}.weights.checkpoint").value),
        gpus=instance.gpus // nodes,
        nodes=nodes,
        engines=int(instance.engine_args.get("data_parallel_size", 1)),
        download_mib_per_second=place.download_mib_per_second if downloads else None,
        weights_on_node=not local and on_node,
    )


def expanded(word: str) -> str:
    """A word that Kubernetes (``$(NAME)``) and Compose (``$NAME``) leave as it was."""
    return word.replace("$", "$$")


def templated(text: str) -> str:
    """A text that Go's templates (Helm's ``tpl``, KServe) leave as it was."""
    return text.replace("{{", "{{`{{`}}")


def pod_view(
    plan: Plan, instance: Instance, engine: EngineFacts, *, fetched_first: bool = False
) -> dict[str, Any]:
    """Everything a template places into a pod; ``fetched_first`` as :func:`resources_of` has it.

    Raises:
        OutputError: an argument cannot be written, or the model is a folder that no claim holds.
    """
    place = plan.environment
    needs = resources_of(plan, instance, fetched_first=fetched_first)
    model = instance.engine_args.model
    _check_model(model, place)
    shutdown = int(instance.engine_args.get("shutdown_timeout", 0))
    startup = int(needs.startup.value)
    nodes = nodes_per_replica(plan, instance)
    return {
        "name": object_name(plan, instance),
        "namespace": place.namespace,
        "labels": labels(plan, instance),
        "selector": selector(plan, instance),
        "image": image(plan),
        "image_pull_secrets": place.image_pull_secrets,
        "model": expanded(model_word(instance)),
        "model_because": because(instance.engine_args.model_origin),
        "args": [
            {
                "dest": arg.dest,
                "because": because(arg.origin),
                "words": [expanded(word) for word in flag_words(arg, engine)],
            }
            for arg in instance.engine_args
        ],
        "port": port_of(instance, engine),
        "user": engine.image_uid,
        "home": HOME if engine.image_uid else "/root",
        "gpus": instance.gpus // nodes,
        "gpu_product": gpu_label(plan),
        "dra": place.gpu_allocation is GpuAllocation.DRA,
        "gpu_expression": "device.attributes['gpu.nvidia.com'].productName == "
        f"'{_cel(plan.node.accelerator.name)}'",
        "place": place,
        "resources": {
            "cpu": str(needs.cpu.value),
            "memory_request": binary(needs.memory_request),
            "memory_limit": binary(needs.memory_limit),
            "ephemeral_storage": binary(needs.ephemeral_storage),
            "shm": binary(needs.shm) if needs.shm else None,
            "claim": binary(needs.claim),
        },
        "because": {
            "cpu": figure_because(needs.cpu),
            "memory_request": figure_because(needs.memory_request),
            "memory_limit": figure_because(needs.memory_limit),
            "ephemeral_storage": figure_because(needs.ephemeral_storage),
            "shm": figure_because(needs.shm) if needs.shm else "",
            "claim": figure_because(needs.claim),
            "startup": figure_because(needs.startup),
        },
        "local_model": is_path(model),
        "cache": "none" if is_path(model) else place.model_cache.value,
        "startup_seconds": startup,
        "waits_longer": startup > ENGINE_READY_SECONDS,
        "probe_seconds": _PROBE_SECONDS,
        "startup_failures": ceil_div(startup, _PROBE_SECONDS),
        "progress_deadline": startup + _ROLLOUT_SECONDS,
        "shutdown_seconds": shutdown,
        "pre_stop_seconds": PRE_STOP_SECONDS,
        "grace_seconds": PRE_STOP_SECONDS + shutdown + EXIT_SECONDS,
    }


def gpu_label(plan: Plan) -> str:
    """``nvidia.com/gpu.product`` of the planned GPU: the driver's name with blanks as dashes.

    The rule is the device plugin's (NVIDIA/k8s-device-plugin internal/lm/resource.go).
    """
    return "-".join(plan.node.accelerator.name.split())


def _cel(text: str) -> str:
    """Text inside a CEL literal in single quotes."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


def figure_because(figure: Figure) -> str:
    """How a figure was reached, and where that comes from."""
    return f"{figure.formula} [{figure.source}]"


def binary(figure: Figure) -> str:
    """Bytes as a Kubernetes quantity; they are whole GiB already."""
    return f"{int(figure.value) // GIB}Gi"


def _check_model(model: str, place: Environment) -> None:
    if not is_path(model):
        if place.model_claim is not None:
            raise OutputError(
                f"model_claim holds a folder, but the workload names {model} on the Hub",
                where="environment.model_claim",
                fix=f"name the model by its folder below {place.model_mount_path}, or leave "
                "model_claim out: the weights are then downloaded into a claim of their own",
            )
        return
    if place.model_claim is None:
        raise OutputError(
            f"the model is the folder {model}: no pod can see it",
            where="environment.model_claim",
            fix="--set model_claim=NAME names an existing claim that holds it",
        )
    if not model.startswith(f"{place.model_mount_path.rstrip('/')}/"):
        raise OutputError(
            f"the model's folder {model} is not below {place.model_mount_path}, where the claim "
            "is mounted",
            where="environment.model_mount_path",
            fix="name the model in the workload as the pod sees it, or set model_mount_path",
        )
