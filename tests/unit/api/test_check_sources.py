"""check() over files, folders and texts: what is read, and the facts taken from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor.api.checking import CheckReport, check
from vllm_advisor.cli.check import InputKind
from vllm_advisor.errors import InputError
from vllm_advisor.parse.kinds import KINDS

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
POD = """\
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeSelector: {{nvidia.com/gpu.product: {gpu}}}
  containers:
    - name: vllm
      image: vllm/vllm-openai:{tag}
      args: [{model}, --max-model-len, "8192", --tensor-parallel-size, "{tp}"]
      resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""


@pytest.fixture(autouse=True, scope="module")
def offline() -> Iterator[None]:
    """A model that is not bundled is not asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


def pod(**changes: Any) -> str:
    given = {
        "name": "p", "gpu": "NVIDIA-H100-80GB-HBM3", "tag": "v0.33.0", "model": MODEL, "tp": 1,
        "gpus": 1,
    }  # fmt: skip
    return POD.format(**{**given, **changes})


def rules(report: CheckReport) -> list[str]:
    """Findings about the command: pods and secrets have tests of their own."""
    about = ("CTX", "FLG", "KV", "PAR", "SCH")
    return [f.rule for f in report.findings if f.rule.startswith(about)]


def test_facts_come_from_the_manifest() -> None:
    report = check("p.yaml", text=pod(tag="v0.32.0", gpus=2, tp=2))
    (row,) = report.instances
    assert rules(report) == []
    assert (row.gpu, row.gpu_count, row.vllm_version) == ("h100-sxm", 2, "0.32.0")
    assert (row.vllm_version_source, row.gpu_source) == ("p.yaml:7:7", "user:p.yaml:4:18")
    assert report.vllm_version == "0.32.0"
    assert list(report.figures) == [row.figures] == ["p.yaml:8"]


def test_options_win_over_the_manifest() -> None:
    report = check("p.yaml", text=pod(tag="v0.32.0"), gpu="l4", gpu_count=4, vllm_version="0.33.0")
    (row,) = report.instances
    assert (row.gpu, row.gpu_count, row.gpu_source) == ("l4", 4, "user:--gpu")
    assert (row.vllm_version, row.vllm_version_source) == ("0.33.0", "--vllm-version")


def test_more_ranks_than_the_limit_of_the_pod() -> None:
    report = check("p.yaml", text=pod(tp=2))
    assert rules(report) == ["PAR002"]
    (finding,) = (f for f in report.findings if f.rule == "PAR002")
    assert str(finding.location) == "p.yaml:8:98"


def test_no_version_is_stated() -> None:
    report = check("p.yaml", text=pod(tag="latest"))
    (row,) = report.instances
    assert (row.vllm_version, row.vllm_version_source) == (
        "0.33.0",
        "newest known: no version is stated",
    )


def test_a_version_older_than_what_is_recorded_is_judged_with_less_confidence() -> None:
    text = pod(tag="v0.1.0").replace('--tensor-parallel-size, "1"', "--no-such-flag")
    report = check("p.yaml", text=text)
    (row,) = report.instances
    assert row.vllm_version == "0.1.0"
    # Its image starts the older module, which ignores a positional model.
    assert sorted(rules(report)) == ["FLG001", "FLG002"]
    assert {f.confidence for f in report.findings if f.rule == "FLG001"} == {"medium"}
    asked = check("p.yaml", text=pod(tag="latest"), vllm_version="0.1.0")
    assert {f.confidence for f in asked.findings} == {"medium"}
    assert asked.vllm_version == "0.1.0"


@pytest.mark.parametrize(
    ("gpu", "why"),
    [
        ("[NVIDIA-L4, NVIDIA-L40S]", "it may be any of l4, l40s"),
        ("[NVIDIA-L4, NVIDIA-NEVER-BUILT]", "no profile for GPU 'NVIDIA-NEVER-BUILT'"),
        ("[NVIDIA-L4, nvidia-l4]", None),
    ],
)
def test_nodes_of_several_gpus(gpu: str, why: str | None) -> None:
    terms = (
        f"[{{matchExpressions: [{{key: nvidia.com/gpu.product, operator: In, values: {gpu}}}]}}]"
    )
    affinity = (
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        f"{{nodeSelectorTerms: {terms}}}}}}}"
    )
    text = pod().replace("nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", affinity)
    report = check("p.yaml", text=text)
    reasons = [n.reason for n in report.not_checked if n.rule == "PAR002"]
    assert len(reasons) == (why is not None)
    assert all(reason.startswith(why or "") and "give --gpu" in reason for reason in reasons)


def test_gpus_that_are_not_counted_are_as_many_as_needed() -> None:
    text = pod(tp=4).replace("      resources: {limits: {nvidia.com/gpu: 1}}\n", "")
    report = check("p.yaml", text=text)
    assert [row.gpu_count for row in report.instances] == [4]
    assert rules(check(["vllm", "serve", MODEL, "-tp", "4"], gpu="h100-sxm")) == ["PAR002"]


def test_a_model_that_is_not_named_is_not_looked_for() -> None:
    report = check("p.yaml", text="args: [--max-num-seqs, '8']", gpu="l4")
    reasons = {n.reason for n in report.not_checked}
    assert "the source does not name the model; give --model-config" in reasons
    assert not [r for r in reasons if "Hub" in r]


def test_figures_have_a_key_of_their_own() -> None:
    flow = f"{{image: vllm/vllm-openai:v0.33.0, args: [{MODEL}, --max-model-len, '512']}}"
    text = f"kind: Pod\nspec: {{containers: [{flow}, {flow}]}}\n"
    report = check("p.yaml", text=text, gpu="l4")
    keys = [row.figures for row in report.instances]
    assert len(set(keys)) == len(report.figures) == 2
    assert keys[0] == "p.yaml:2"
    both = check("p.yaml", text=text, gpu="l4").to_dict()
    assert [one["figures"] for one in both["instances"]] == list(both["figures"])


def test_a_folder(tmp_path: Path) -> None:
    """Manifests of one folder belong together; what is hidden, binary or a template is not read."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "pod.yaml").write_text(pod().replace("  containers", "  volumes: "
        "[{name: w, persistentVolumeClaim: {claimName: c}}]\n  containers"))  # fmt: skip
    (tmp_path / "b" / "claim.yaml").write_text("kind: PersistentVolumeClaim\nmetadata: {name: c}\n")
    (tmp_path / "a.sh").write_text(f"vllm serve {MODEL} --no-such\n")
    (tmp_path / ".hidden.sh").write_text("vllm serve x --no-such\n")
    (tmp_path / "binary.yaml").write_bytes(b"kind: Pod\0")
    (tmp_path / "other.yaml").write_text("a: b\n")
    (tmp_path / "setup.sh").write_text("pip install vllm\n")
    (tmp_path / "chart.yaml").write_text("kind: Pod\nx: {{ .Values.y }}\n")
    (tmp_path / "README.md").write_text("vllm serve x --no-such\n")
    report = check(tmp_path)
    assert [Path(row.location.file).name for row in report.instances] == ["a.sh", "pod.yaml"]
    assert rules(report) == ["FLG001"]
    assert [n.message.partition(":")[0] for n in report.notes] == [
        "a template of Helm",
        "3 scripts and YAML files start no vLLM, or are too large",
    ]


def test_several_sources(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(pod())
    (tmp_path / "s.sh").write_text(f"vllm serve {MODEL}\n")
    report = check([tmp_path / "p.yaml", str(tmp_path / "s.sh"), "-"], text=pod(name="in"))
    assert [row.name for row in report.instances] == ["Pod/p", "line 1", "Pod/in"]
    assert [row.kind for row in report.instances] == ["kubernetes", "shell", "kubernetes"]


def test_a_text_with_its_kind() -> None:
    report = check(f"vllm serve {MODEL} --no-such", kind="serve")
    assert rules(report) == ["FLG001"]
    assert check("args: [--no-such]", kind="kubernetes").findings[0].rule == "FLG001"


def test_a_source_without_a_server_is_told() -> None:
    report = check("s.yaml", text="kind: Service\nmetadata: {name: s}\n")
    assert (report.instances, [n.message for n in report.notes]) == ((), ["starts no vLLM server"])
    assert report.vllm_version == "0.33.0"


@pytest.mark.parametrize(
    ("source", "options", "what"),
    [
        ("absent.yaml", {}, "cannot read"),
        (["absent.yaml", "absent.sh"], {}, "cannot read"),
        ("x", {"text": "echo hello"}, "nothing that starts vLLM"),
        ("x.sh", {"text": "echo hello"}, "no vllm command found"),
        ("x", {"text": "a: b", "kind": "helm"}, "no kind of source"),
        ("x", {"text": "a: [b", "kind": "compose"}, "this is not YAML"),
        ("\0", {}, "cannot read"),
    ],
)
def test_what_cannot_be_read(source: Any, options: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        check(source, **options)


def test_the_command_line_knows_every_kind() -> None:
    assert {kind.value for kind in InputKind} == set(KINDS)
