"""What a server runs in, as it is written: image, environment, resources, volumes, probes.

One shape for a container of a pod, a service of a Compose file, a ``docker run`` and a unit. What
is not written is ``None`` or empty, never a default: defaults are for the rules to know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from vllm_advisor.parse.images import Image
from vllm_advisor.parse.placed import Placed
from vllm_advisor.types.decision import Location

_GPUS = re.compile(
    r"nvidia\.com/(?:gpu|gpu\.shared|mig-[\w.-]+)|amd\.com/gpu(?:\.shared)?|gpu\.intel\.com/\w+"
    r"|habana\.ai/gaudi|google\.com/tpu|aws\.amazon\.com/neuron\w*|huawei\.com/Ascend\w*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvVar:
    """A variable. ``value`` is None where it comes from elsewhere.

    ``source`` says whence: ``value``, ``secret``, ``config-map``, ``field`` (of the pod),
    ``host`` (whoever starts the container), or ``unresolved`` for a value with variables that are
    not known. ``reference`` is ``NAME/KEY`` of a Secret or ConfigMap, or the field's path.
    """

    name: str
    value: str | None
    source: str
    reference: str = ""
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Requests and limits by name (``cpu``, ``memory``, ``nvidia.com/gpu``).

    Quantities are in their base unit: cores, bytes, pieces. ``claims`` are the device claims.
    """

    location: Location
    requests: Mapping[str, Placed[Fraction]] = field(default_factory=dict)
    limits: Mapping[str, Placed[Fraction]] = field(default_factory=dict)
    claims: tuple[Placed[str], ...] = ()

    @property
    def gpus(self) -> Placed[int] | None:
        """GPUs (or their shares) that are asked for, of whatever make."""
        for name, placed in (*self.limits.items(), *self.requests.items()):
            if _GPUS.fullmatch(name):
                return Placed(int(placed.value), placed.location)
        return None

    @property
    def gpu_resource(self) -> str:
        """The name of the resource that :attr:`gpus` counts; empty where there is none."""
        return next((n for n in (*self.limits, *self.requests) if _GPUS.fullmatch(n)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMemory:
    """What is at /dev/shm: ``kind`` is ``emptyDir``, ``shm_size``, ``host`` or ``other``.

    ``size`` in bytes is None where no bound is written. Without one of these a container has the
    64 MiB of its runtime.
    """

    kind: str
    size: int | None
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume and where the container sees it.

    ``kind`` is Kubernetes' (``emptyDir``, ``persistentVolumeClaim``, ``hostPath``, ``ephemeral``,
    ``secret``, ...; ``volumeClaimTemplate`` for a set's own) or Compose's (``bind``, ``volume``,
    ``tmpfs``); empty where the volume is not in the source. ``source`` is the claim's or host's
    name. ``size`` (bytes) and ``access_modes`` are of the claim, where it is in the source.
    """

    path: str
    volume: str
    kind: str
    source: str = ""
    sub_path: str = ""
    read_only: bool = False
    medium: str = ""
    size: int | None = None
    access_modes: tuple[str, ...] = ()
    location: Location
    volume_location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe, or a Compose file's healthcheck; times in seconds, None where not written."""

    kind: Literal["startup", "readiness", "liveness", "healthcheck"]
    handler: str  # "httpGet /health:8000", "exec curl ...", "tcpSocket :8000"
    path: str = ""
    port: str = ""
    initial_delay: Placed[int] | None = None
    period: Placed[int] | None = None
    timeout: Placed[int] | None = None
    failures: Placed[int] | None = None
    location: Location

    @property
    def budget(self) -> int:
        """Seconds until a server that never answers is given up, with the platform's defaults."""
        period, failures = (30, 3) if self.kind == "healthcheck" else (10, 3)
        return _of(self.initial_delay, 0) + _of(self.period, period) * _of(self.failures, failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """Rights; a container's own setting goes before its pod's."""

    run_as_user: Placed[int] | None = None
    run_as_group: Placed[int] | None = None
    run_as_non_root: Placed[bool] | None = None
    fs_group: Placed[int] | None = None
    read_only_root: Placed[bool] | None = None
    privilege_escalation: Placed[bool] | None = None
    privileged: Placed[bool] | None = None
    capabilities_added: tuple[Placed[str], ...] = ()
    capabilities_dropped: tuple[Placed[str], ...] = ()
    location: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The container of a server."""

    name: str
    location: Location
    image: Image | None = None
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[Placed[str], ...] = ()  # "Secret/name", "ConfigMap/name", a file
    resources: Resources
    shared_memory: SharedMemory | None = None
    mounts: tuple[Mount, ...] = ()
    startup: Probe | None = None
    readiness: Probe | None = None
    liveness: Probe | None = None
    healthcheck: Probe | None = None
    ports: tuple[Placed[int], ...] = ()
    security: Security
    pre_stop: Placed[str] | None = None

    def variable(self, name: str) -> EnvVar | None:
        """The variable of a name; of several the last one, which counts."""
        return next((one for one in reversed(self.env) if one.name == name), None)


def _of(placed: Placed[int] | None, default: int) -> int:
    return default if placed is None else placed.value
