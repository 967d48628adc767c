"""The log of a pod, as ``kubectl logs`` prints it."""

from __future__ import annotations

import shutil
import subprocess

from vllm_advisor.errors import InputError, UnknownFactError

_TIMEOUT_SECONDS = 120


def read_pod_log(
    pod: str, *, namespace: str | None = None, container: str | None = None, previous: bool = False
) -> str:
    """What a container printed; everything is as the current kubectl context has it.

    Args:
        pod: its name, or ``deployment/NAME``.
        namespace: else the context's.
        container: else the pod's default one.
        previous: of the container before the last restart.

    Raises:
        InputError: a name would be read as an option.
        UnknownFactError: there is no kubectl, or it cannot read the log.
    """
    words = ["logs", pod]
    for option, value in (("--namespace", namespace), ("--container", container)):
        if value is not None:
            words.append(f"{option}={value}")
    if pod.startswith("-") or not pod:
        raise InputError(f"{pod!r} is no name of a pod", where="--kubectl", fix="--kubectl POD")
    if previous:
        words.append("--previous")
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise UnknownFactError(
            "there is no kubectl here",
            where="--kubectl",
            fix="where there is one: kubectl logs POD | vllm-advisor report -",
        )
    try:
        done = subprocess.run(  # noqa: S603 - the words are a list, none of them an option
            [kubectl, *words], capture_output=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer in {_TIMEOUT_SECONDS} s"
        raise UnknownFactError(f"kubectl logs failed: {reason}", where="--kubectl") from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UnknownFactError(
            f"kubectl logs failed: {said[-1] if said else f'exit code {done.returncode}'}",
            where="--kubectl",
            fix="see that `kubectl get pod` lists it; --namespace and --container name the place",
        )
    return done.stdout.decode("utf-8", "replace")
