"""Target ``kserve``: one LLMInferenceService per instance, for KServe 0.20 and newer.

KServe merges each object over a preset of its own (kserve config/llmisvcconfig/
config-llm-template.yaml), which has the command, probes, TLS, volumes and HOME. What is written
here is what the plan knows better, in the preset's own terms: flags the preset gives itself are
fields of the object, all others are ``args``.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import Any

from vllm_advisor.errors import OutputError
from vllm_advisor.render.argv import flag_words, json_arg
from vllm_advisor.render.because import because
from vllm_advisor.render.jinja import render_template
from vllm_advisor.render.kustomization import kustomization
from vllm_advisor.render.names import metadata_of, object_name
from vllm_advisor.render.pod import (
    ENGINE_READY_SECONDS,
    expanded,
    is_path,
    nodes_per_replica,
    pod_view,
    served_names,
    templated,
)
from vllm_advisor.render.rollout import has_spare, rollout_limits, rollout_reason
from vllm_advisor.types.engine import EngineArgs, EngineFacts
from vllm_advisor.types.environment import Environment
from vllm_advisor.types.plan import Artifact, Instance, Plan
from vllm_advisor.units import ceil_div
from vllm_advisor.version import __version__

TARGET = "kserve"
PRESET_STARTUP_SECONDS = 600  # startupProbe of the preset: 60 x 10 s
# The name by which KServe's routes know an instance; its controller fills in the braces, in the
# args of an object as in its own presets (kserve config_merge.go#ReplaceVariables).
ROUTED_NAME = "publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"
# The preset's Service, probes and InferencePool know one port; its own --tensor-parallel-size
# comes from spec.parallelism. A replica on one node takes no other field of spec.parallelism.
_OWN = frozenset(("port", "tensor_parallel_size"))
# vLLM's own default (vllm/config/load.py#LoadConfig.ignore_patterns), and gpt-oss's second copy.
_IGNORED = ["original/*", "metal/*"]
# Labels of KServe's own that find its pods; those of an object would replace them.
_SELECTING = ("app.kubernetes.io/", "kserve.io/", "llm-d.ai/")
_HUB_ID = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_REVISION = re.compile(r"[A-Za-z0-9._-]+")
_FOLDER = re.compile(r"[A-Za-z0-9._~@+=,/-]+")
# Stands unquoted in the preset's shell command, in JSON and in the path of a route.
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_LONGEST_MODEL_NAME = 253


def render(plan: Plan, engine: EngineFacts) -> tuple[Artifact, ...]:
    """``kserve/<instance>.yaml`` for each instance, and ``kserve/kustomization.yaml``.

    Raises:
        OutputError: KServe has no way to run an instance, or to get its model.
    """
    files = []
    for instance in plan.deployment.instances:
        view = instance_view(plan, instance, engine)
        files.append(
            Artifact(
                path=f"{TARGET}/{view['name']}.yaml",
                text=render_template("kserve/instance.yaml.j2", view),
            )
        )
    names = [f.path.split("/")[-1] for f in files]
    return (kustomization(plan, TARGET, names, _requests(plan)), *files)


def _requests(plan: Plan) -> list[str]:
    """Where an application sends the requests of each class: to the routes that KServe makes."""
    instances = {i.name: i for i in plan.deployment.instances}
    lines = []
    for route in plan.routes:
        if route.instance not in instances:
            continue
        instance = instances[route.instance]
        name = object_name(plan, instance)
        lines.append(
            f"{route.request_class}: "
            + ("passages found by retrieval " if route.retrieve else "")
            + f"to the address in the status of llminferenceservice/{name}, model "
            + model_name(plan, instance)
            + (f"; else {route.fallback}" if route.fallback else "")
        )
    return lines


def instance_view(plan: Plan, instance: Instance, engine: EngineFacts) -> dict[str, Any]:
    """Everything the templates place for one instance."""
    _check_one_node(plan, instance)
    place, args = plan.environment, instance.engine_args
    pod = pod_view(plan, instance, engine, fetched_first=True)
    startup = max(pod["startup_seconds"], PRESET_STARTUP_SECONDS)
    tensor = next((arg for arg in args if arg.dest == "tensor_parallel_size"), None)
    surge = has_spare(plan, instance)
    metadata = metadata_of(pod["name"], place, pod["labels"])
    if pod["dra"]:
        metadata["annotations"] = _device_annotations(place, pod)
    return {
        **pod,
        "header": f"Instance {instance.name} ({instance.role}) of the plan {plan.name}, "
        f"for vLLM {plan.vllm_version} on KServe 0.20; written by vllm-advisor {__version__}.",
        "classes": instance.classes,
        "metadata": metadata,
        "uri": model_uri(args, place),
        "uri_because": because(args.model_origin),
        "model_name": model_name(plan, instance),
        "tensor": int(tensor.value) if tensor else 0,
        "tensor_because": because(tensor.origin) if tensor else "",
        "replicas": instance.replicas,
        "rollout": rollout_limits(surge=surge),
        "rollout_because": rollout_reason(
            "The old pod gives its GPUs back first: no spare GPU is needed.", surge=surge
        ),
        "pod_labels": {k: v for k, v in place.labels.items() if not k.startswith(_SELECTING)},
        "args": _args(args, engine),
        "ignore_patterns": json_arg(_IGNORED),
        "startup_seconds": startup,
        "waits_longer": startup > ENGINE_READY_SECONDS,
        "startup_failures": ceil_div(startup, pod["probe_seconds"]),
        "preset_seconds": PRESET_STARTUP_SECONDS,
    }


def model_uri(args: EngineArgs, place: Environment) -> str:
    """``hf://ORG/NAME[:REVISION]``, or ``pvc://CLAIM/FOLDER`` for a folder in ``model_claim``.

    Raises:
        OutputError: KServe cannot name the model (kserve_storage.py#_download_hf takes an owner
            and a name; folders go through a URL).
    """
    model = args.model
    if is_path(model):
        folder = PurePosixPath(model).relative_to(place.model_mount_path).as_posix()
        if not _FOLDER.fullmatch(folder) or ".." in folder.split("/"):
            raise _unnameable(f"the folder {model}", "letters, digits and . _ ~ @ + = , - only")
        return f"pvc://{place.model_claim}/{folder}".removesuffix("/.")
    if not _HUB_ID.fullmatch(model):
        raise _unnameable(f"the model {model!r}", "ORGANISATION/NAME on the Hub")
    revision = args.get("revision")
    if revision is None:
        return f"hf://{model}"
    if not _REVISION.fullmatch(str(revision)):
        raise _unnameable(f"the revision {revision!r}", "a tag, a branch or a commit without /")
    return f"hf://{model}:{revision}"


def model_name(plan: Plan, instance: Instance) -> str:
    """``spec.model.name``: the instance's own among its served names, by which routes find it.

    That is the one it is called by, or the last: names before it may be served by other instances
    as well. Where such a name cannot stand in a route, it is the object's.
    """
    served = served_names(instance.engine_args)
    name = instance.name if instance.name in served else served[-1]
    fits = _MODEL_NAME.fullmatch(name) and len(name) <= _LONGEST_MODEL_NAME
    return name if fits else object_name(plan, instance)


def evaluated(word: str) -> str:
    """A word as an arg that is still this word when vLLM gets it.

    On its way KServe runs a Go template over it, Kubernetes expands ``$(NAME)``, and the preset's
    ``eval "exec vllm serve ... $@"`` reads it as shell text.
    """
    return templated(expanded(shlex.quote(word)))


def _args(args: EngineArgs, engine: EngineFacts) -> list[dict[str, Any]]:
    """The arguments as words, each with its reason; names always, for the preset gives others."""
    written = []
    if args.get("served_model_name") is None:
        why = "the name that vLLM gives it by itself"
        words = ["--served-model-name", *served_names(args)]
        written.append(_named(why, [evaluated(word) for word in words]))
    for arg in args:
        words = [evaluated(word) for word in flag_words(arg, engine)]
        if arg.dest == "served_model_name":
            written.append(_named(because(arg.origin), words))
        elif arg.dest not in _OWN:
            written.append({"because": because(arg.origin), "words": words})
    return written


def _named(why: str, words: list[str]) -> dict[str, Any]:
    return {
        "because": f"{why}; the last one is what KServe's routes ask for",
        "words": [*words, ROUTED_NAME],
    }


def _device_annotations(place: Environment, pod: dict[str, Any]) -> dict[str, str]:
    """DRA as KServe manages it: it writes the ResourceClaimTemplate and the pods' claims."""
    prefix = "serving.kserve.io/exp-dra-"
    return {
        f"{prefix}device-class": place.device_class_name,
        f"{prefix}device-count": str(pod["gpus"]),
        f"{prefix}cel-selector": pod["gpu_expression"],
        f"{prefix}container-name": "main",
    }


def _check_one_node(plan: Plan, instance: Instance) -> None:
    if nodes_per_replica(plan, instance) > 1:
        raise OutputError(
            f"a replica takes {instance.gpus} GPUs on {nodes_per_replica(plan, instance)} nodes, "
            "and KServe has a preset for several nodes with data parallelism only",
            where=f"instance {instance.name}",
            fix="use the target kubernetes",
        )


def _unnameable(what: str, wanted: str) -> OutputError:
    return OutputError(
        f"KServe cannot get {what}: its URIs take {wanted}",
        where="spec.model.uri",
        fix="name the model so, or use the target kubernetes",
    )
