"""What vLLM is started with by KServe: each step that an arg of an object goes through, for real.

KServe's Go template over the merged object is run by Go (in Helm), the kubelet's expansion is
written down in ``judges.kubelet``, and the shell text of the preset is evaluated by bash, with a
vllm that tells its arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import helm_python

from judges.kubelet import expanded_words

NAMESPACE = "llm"
# The end of the command of kserve config/llmisvcconfig/config-llm-template.yaml (0.20.0), with what
# is the object's filled in by KServe. The quotes around the names end the text's own, as there.
PRESET = r"""
eval "exec vllm serve /mnt/models \
  --served-model-name "{{ .Spec.Model.Name }}" "publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}" \
  --port 8000 \
  --disable-access-log-for-endpoints /health,/metrics,/ping \
  {{- if .Spec.Parallelism.Tensor }} --tensor-parallel-size {{ .Spec.Parallelism.Tensor }}{{- end }} \
  ${VLLM_ADDITIONAL_ARGS} \
  $@"
"""


def served_argv(service: dict[str, Any], scratch: Path) -> list[str]:
    """The words after ``vllm`` that the container of an LLMInferenceService runs."""
    command, *args = _filled_in(service, scratch)
    variables = {"HOME": "expanded", "X": "expanded"}
    words = expanded_words(args, variables)
    vllm = scratch / "vllm"
    vllm.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n", encoding="utf-8")
    vllm.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-c", command, "--", *words],
        env={"PATH": f"{scratch}:{os.environ['PATH']}", "X": "evaluated", "LC_ALL": "C.UTF-8"},
        cwd=scratch,
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout.decode().split("\0")[:-1]


def _filled_in(service: dict[str, Any], scratch: Path) -> list[str]:
    """Command and args after KServe's templating, which goes over them as JSON, as Go writes it.

    Raises:
        helm_python.HelmError: a template that Go does not take.
    """
    spec = service["spec"]
    (main,) = spec["template"]["containers"]
    text = json.dumps([PRESET, *main["args"]], ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    chart = scratch / "chart"
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: merged, version: 0.0.1}\n")
    template = "{{ with .Values }}" + text + "{{ end }}"
    (chart / "templates" / "merged.yaml").write_text(template, encoding="utf-8")
    values = {
        "ObjectMeta": {"Namespace": NAMESPACE, "Name": service["metadata"]["name"]},
        "Spec": {
            "Model": {"Name": spec["model"]["name"]},
            "Parallelism": {"Tensor": spec.get("parallelism", {}).get("tensor")},
        },
    }
    with helm_python.Chart.load(chart) as loaded:
        (merged,) = loaded.render(values, name="merged", namespace=NAMESPACE).values()
    filled: list[str] = json.loads(merged)
    return filled
