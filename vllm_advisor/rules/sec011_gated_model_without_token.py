"""The model is gated, and its container gets no token to download it with.

## What it checks
Models that are known to be gated, in containers without `HF_TOKEN`, `--hf-token`, a Secret of
variables, or a volume or init container that may hold the model already.

## Why it matters
The Hub answers 401 or 403, and the server exits while it starts.

## Bad
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["meta-llama/Llama-3.1-8B-Instruct"]
```

## Good
```yaml
services:
  vllm:
    image: vllm/vllm-openai:v0.33.0
    command: ["meta-llama/Llama-3.1-8B-Instruct"]
    environment: {HF_TOKEN: "${HF_TOKEN:?}"}
```

## Fix
Accept the model's terms on the Hub, put a token that may read it into a Secret, and take `HF_TOKEN`
from it.

## References
- https://huggingface.co/docs/hub/models-gated
- https://docs.vllm.ai/en/latest/deployment/k8s/
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.errors import UnknownFactError
from vllm_advisor.knowledge.gated_models import is_gated
from vllm_advisor.parse.deployed import ServedInstance
from vllm_advisor.rules.plain_text import secret_reference
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.decision import Location
from vllm_advisor.types.finding import Severity

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH")
# Elsewhere than the Hub, or from nowhere.
_NO_HUB = ("HF_ENDPOINT", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_USE_MODELSCOPE")
_KEPT = ("persistentVolumeClaim", "hostPath", "nfs", "csi", "bind", "volume", "secret", "")


@rule(id="SEC011", name="gated-model-without-token", severity=Severity.ERROR)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for a token of a container whose model needs one."""
    instance, command = subject.instance, subject.command
    container = instance.container if instance else None
    if instance is None or container is None or not is_gated(command.model):
        return
    given = any(container.variable(name) or name in command.env for name in (*_TOKENS, *_NO_HUB))
    if given or subject.args.get("hf_token") or subject.args.get("load_format") == "dummy":
        return
    place = _may_have_it(instance)
    if place is not None:
        what = (
            f"{command.model} is gated, and what stands at {place} may bring a token or the model"
        )
        raise UnknownFactError(what, where=str(place))
    origin = subject.args.model_origin
    yield Fault(
        message=f"{command.model} is gated, and its container has no token of the Hub",
        location=origin if isinstance(origin, Location) else command.location,
        fix=f"accept the model's terms, and {secret_reference(subject, 'HF_TOKEN')}",
        evidence=(("model", command.model),),
    )


def _may_have_it(instance: ServedInstance) -> Location | None:
    """Where the source brings what is not in it: variables, kept volumes, an init container."""
    container, pod = instance.container, instance.pod
    if container is not None and container.env_from:
        return container.env_from[0].location
    for mount in container.mounts if container else ():
        fresh = mount.kind == "persistentVolumeClaim" and mount.size is not None
        if mount.kind in _KEPT and not fresh:
            return mount.location
    return pod.init_containers[0].location if pod and pod.init_containers else None
