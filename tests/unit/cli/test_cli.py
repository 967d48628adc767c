"""The command line as a user meets it: a process of its own, its streams and its exit codes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from forked_cli import run_cli

WORKLOAD = """\
model: meta-llama/Llama-3.1-8B-Instruct
hardware: {gpu: h100-sxm, count: 1}
classes:
  - name: chat
    prompt_tokens: {p50: 600, p95: 2000, max: 6000}
    output_tokens: 500
    concurrent_requests: 10
"""


def run(
    *words: str, stdin: str = "", env: dict[str, str] | None = None, **kwargs: object
) -> subprocess.CompletedProcess[str]:
    if not kwargs.keys() - {"cwd"}:
        return run_cli(*words, stdin=stdin, env=env, **kwargs)
    settings = {**os.environ, "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", **(env or {})}
    return subprocess.run(
        [sys.executable, "-m", "vllm_advisor", *words],
        input=stdin,
        capture_output=True,
        text=True,
        env=settings,
        timeout=60,
        check=False,
        **kwargs,
    )


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "workload.yaml"
    path.write_text(WORKLOAD)
    return path


def test_plan_prints_the_result_on_stdout_only(workload: Path) -> None:
    done = run("plan", str(workload))
    assert done.returncode == 0
    assert "vllm serve meta-llama/Llama-3.1-8B-Instruct" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("form", ["json", "yaml", "markdown"])
def test_formats(workload: Path, form: str) -> None:
    done = run("plan", str(workload), "--format", form)
    assert done.returncode == 0
    if form == "markdown":
        assert done.stdout.startswith("# Plan: ")
        return
    data = json.loads(done.stdout) if form == "json" else yaml.safe_load(done.stdout)
    assert data["schema_version"] == "1"
    assert data["feasible"] is True
    assert data["instances"][0]["command"].startswith("vllm serve ")


def test_standard_input(workload: Path) -> None:
    done = run("plan", "-", "--format", "json", stdin=workload.read_text())
    assert done.returncode == 0
    assert json.loads(done.stdout)["decisions"]


def test_output_dir_is_complete_and_not_written_over(workload: Path, tmp_path: Path) -> None:
    out = tmp_path / "deploy"
    done = run("plan", str(workload), "--output-dir", str(out))
    assert done.returncode == 0
    assert sorted(p.name for p in out.iterdir()) == [
        "PLAN.md",
        "plan.yaml",
        "routing.yaml",
        "serve-chat.sh",
    ]
    assert f"wrote {out / 'plan.yaml'}" in done.stderr
    again = run("plan", str(workload), "--output-dir", str(out))
    assert again.returncode == 0  # the same bytes: nothing to refuse
    (out / "serve-chat.sh").write_text("mine")
    refused = run("plan", str(workload), "--output-dir", str(out))
    assert refused.returncode == 2
    assert "serve-chat.sh already there" in refused.stderr
    assert (out / "serve-chat.sh").read_text() == "mine"
    drift = run("plan", str(workload), "--output-dir", str(out), "--check")
    assert drift.returncode == 1
    assert "serve-chat.sh" in drift.stderr
    over = run("plan", str(workload), "--output-dir", str(out), "--overwrite")
    assert over.returncode == 0
    assert (out / "serve-chat.sh").read_text() != "mine"


def test_a_disk_that_fills_up_leaves_nothing(workload: Path, tmp_path: Path) -> None:
    """Files may grow to 4 KiB only: PLAN.md and plan.yaml do not fit."""
    out = tmp_path / "deploy"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = run("plan", str(workload), "--output-dir", str(out), preexec_fn=limit)
    assert done.returncode == 2
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["workload.yaml"]


def test_a_full_disk_keeps_what_was_there(workload: Path, tmp_path: Path) -> None:
    out = tmp_path / "deploy"
    out.mkdir()
    (out / "plan.yaml").write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = run("plan", str(workload), "--output-dir", str(out), "--overwrite", preexec_fn=limit)
    assert done.returncode == 2
    assert {p.name: p.read_text() for p in out.iterdir()} == {"plan.yaml": "old"}


def test_output_dir_that_is_a_file(workload: Path) -> None:
    done = run("plan", str(workload), "--output-dir", str(workload))
    assert done.returncode == 2
    assert "this is a file" in done.stderr


def test_infeasible_plans_exit_1_and_write_nothing(tmp_path: Path) -> None:
    text = WORKLOAD.replace("Llama-3.1-8B", "Llama-3.3-70B").replace("h100-sxm", "l4")
    text += "constraints: {weight_quantization: forbidden}\n"
    out = tmp_path / "deploy"
    done = run("plan", "-", "--output-dir", str(out), stdin=text)
    assert done.returncode == 1
    assert "no feasible plan" in done.stdout
    assert "nearest" in done.stdout
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "stdin", "code", "message"),
    [
        (("plan", "absent.yaml"), "", 2, "there is no such file"),
        (("plan", "."), "", 2, "this is a folder"),
        (("plan", "-"), "model: [", 2, "this is not YAML"),
        (("plan", "-"), "", 2, "error:"),
        (("plan", "-"), WORKLOAD + "modle: x\n", 2, "did you mean"),
        (("plan", "-"), WORKLOAD.replace("h100-sxm", "h1000"), 3, "no profile for GPU 'h1000'"),
        (("plan", "-"), WORKLOAD.replace("h100-sxm", "h100"), 3, "h100-pcie"),
        (("plan", "-"), WORKLOAD.replace("meta-llama/", "no-such/"), 3, "Hub cache"),
        (("plan", "-"), WORKLOAD.replace("{gpu: h100-sxm, count: 1}", "local"), 3, "NVML"),
        (("plan", "contract-reviw"), "", 2, "did you mean contract-review"),
        (("size", "absent/model", "--gpu", "l4"), "", 3, "local Hub cache"),
        (("size", "./absent"), "", 2, "error:"),
        (("size", "qwen3-8b"), "", 2, "memory of the GPU is not known"),
        (("size", "qwen3-8b", "--gpu", "l4", "--set", "x"), "", 2, "NAME=VALUE"),
        (("size", "qwen3-8b", "--gpu", "l4", "-tp", "3"), "", 1, "attention heads"),
        (
            ("size", "deepseek-v3", "--gpu", "b200", "-tp", "8", "--set", "cpu_offload_gb=4"),
            "",
            3,
            "is not modelled",
        ),
        (("explain", "absent.yaml"), "", 2, "cannot read"),
        (("explain", "-"), "a: b", 2, "no plan.yaml"),
        (("probe",), "", 3, "profiles gpus"),
        (("probe", "--from-node-labels", "absent.json"), "", 2, "error:"),
        (("init", "--profile", "absent"), "", 2, "Bundled are"),
        (("profiles", "gpus", "absent"), "", 3, "error:"),
        (("profiles", "workloads", "absent"), "", 2, "error:"),
        (("rules", "XX999"), "", 2, "no rule or family of rules is called"),
        (("check", "absent.sh"), "", 2, "cannot read"),
        (("check", "-"), "echo hello", 2, "error:"),
        (("no-such-command",), "", 2, "No such command"),
    ],
)
def test_bad_input_is_told_apart(
    words: tuple[str, ...], stdin: str, code: int, message: str, tmp_path: Path
) -> None:
    env = {"HF_HUB_CACHE": str(tmp_path / "cache")}
    done = run(*words, stdin=stdin, env=env, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_size_prints_vllms_line() -> None:
    done = run("size", "deepseek-ai/DeepSeek-V3", "--gpu", "h200-sxm", "--gpu-count", "8",
               "--max-model-len", "128K")  # fmt: skip
    assert done.returncode == 0
    line = "Maximum concurrency for 131,072 tokens per request: 4."
    assert line in " ".join(done.stdout.split())  # a narrow terminal folds it


def test_size_that_does_not_fit_exits_1() -> None:
    done = run("size", "google/gemma-3-27b-it", "--gpu", "h100-sxm", "--max-model-len", "131072",
               "--format", "json")  # fmt: skip
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["fits"] is False
    assert report["max_model_len"]["fits"] < 131072


def test_size_of_training_retention_and_attention() -> None:
    done = run("size", "llama-2-7b-hf", "--gpu", "h100-sxm", "--training", "--retention",
               "--attention-cost", "--format", "json")  # fmt: skip
    assert done.returncode == 0
    report = json.loads(done.stdout)
    parts = {(r["convention"], r["component"]): r["bytes"] for r in report["training"]}
    assert any(component == "total" for _, component in parts)
    policies = {r["policy"]: r for r in report["retention"]}
    assert policies["full"]["needle_at_10"] == "seen"
    assert {"tokens", "attention_flops"} <= set(report["attention_cost"][0])


def test_explain_a_flag_and_a_figure(workload: Path, tmp_path: Path) -> None:
    out = tmp_path / "deploy"
    run("plan", str(workload), "--output-dir", str(out))
    every = run("explain", str(out))
    assert "chat.max-model-len" in every.stdout
    one = run("explain", str(out), "--", "--max-model-len")
    assert one.returncode == 0
    assert "6,500 tokens" in one.stdout
    figure = run("explain", str(out / "plan.yaml"), "chat.memory.kv_cache")
    assert "requested - weights" in figure.stdout
    unknown = run("explain", str(out), "chat.max-model-length")
    assert unknown.returncode == 2
    assert "chat.max-model-len" in unknown.stderr


def test_init_writes_a_workload_that_plans(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert run("init", "--profile", "rag-assistant", "-o", str(path)).returncode == 0
    assert run("plan", str(path)).returncode == 0
    again = run("init", "-o", str(path))
    assert again.returncode == 2
    assert "already there" in again.stderr


def test_schema_is_json(workload: Path) -> None:
    import jsonschema

    schema = json.loads(run("schema", "workload").stdout)
    jsonschema.validate(yaml.safe_load(workload.read_text()), schema)
    place = json.loads(run("schema", "environment").stdout)
    jsonschema.validate({"namespace": "llm", "tolerations": []}, place)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"namspace": "llm"}, place)


@pytest.mark.parametrize("kind", ["gpus", "models", "workloads", "engines"])
def test_profiles_list_and_print(kind: str) -> None:
    names = run("profiles", kind).stdout.split()
    assert len(names) >= 2
    assert run("profiles", kind, names[0]).returncode == 0


def test_check_a_command_after_two_dashes() -> None:
    done = run("check", "--gpu", "l4", "--", "vllm", "serve", "Qwen/Qwen3-8B",
               "--max-model-len", "40960")  # fmt: skip
    assert done.returncode == 1
    assert "KV001" in done.stdout
    lenient = run("check", "--gpu", "l4", "--fail-on", "never", "--", "vllm", "serve",
                  "Qwen/Qwen3-8B", "--max-model-len", "40960")  # fmt: skip
    assert lenient.returncode == 0
    short = run("check", "--gpu", "l4", "--", "vllm", "serve", "Qwen/Qwen3-8B",
                "--max-model-len", "16384")  # fmt: skip
    assert short.returncode == 0


def test_a_closed_pipe_is_no_traceback(workload: Path) -> None:
    command = f"{sys.executable} -m vllm_advisor plan {workload} | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    assert done.stdout.startswith("workload: 1 instance")


def test_a_closed_pipe_is_not_an_answer_of_no(workload: Path) -> None:
    command = (
        f"{sys.executable} -m vllm_advisor plan {workload} -f json | true; exit ${{PIPESTATUS[0]}}"
    )
    assert subprocess.run(["bash", "-c", command], timeout=60, check=False).returncode == 141


def test_render_for_another_place_into_its_own_folder(workload: Path, tmp_path: Path) -> None:
    out = tmp_path / "deploy"
    assert run("plan", str(workload), "--output-dir", str(out)).returncode == 0
    again = ["render", str(out), "-t", "kubernetes", "--output-dir", str(out)]
    assert run(*again, "--set", "namespace=llm").returncode == 0
    assert yaml.safe_load((out / "plan.yaml").read_text())["environment"] == {"namespace": "llm"}
    assert run(*again, "--check").returncode == 0
    other = run(*again, "--set", "namespace=other")  # manifests are there, for llm
    assert other.returncode == 2
    assert "kubernetes/" in other.stderr
    assert "plan.yaml" not in other.stderr


def test_a_relative_folder_is_no_id_on_the_hub(tmp_path: Path) -> None:
    """``models/mine`` in a manifest would be downloaded from whoever has that name."""
    folder = tmp_path / "models" / "mine"
    folder.mkdir(parents=True)
    config = Path(__file__).parents[2] / "data" / "configs" / "llama-3.1-8b-instruct.json"
    (folder / "config.json").write_text(config.read_text())
    model = "meta-llama/Llama-3.1-8B-Instruct"
    (tmp_path / "w.yaml").write_text(WORKLOAD.replace(model, "models/mine"))
    made = run("plan", "w.yaml", "-f", "json", cwd=tmp_path)
    assert json.loads(made.stdout)["model"] == "./models/mine"
    refused = run("plan", "w.yaml", "-t", "kubernetes", cwd=tmp_path)
    assert refused.returncode == 2
    assert "no pod can see it" in refused.stderr


def test_probe_shows_what_the_labels_of_a_node_say(tmp_path: Path) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8",
              "nvidia.com/gpu.memory": "81559"}  # fmt: skip
    node = {"kind": "Node", "metadata": {"name": "gpu-1", "labels": labels}}
    path = tmp_path / "node.json"
    path.write_text(json.dumps(node))
    done = run("probe", "--from-node-labels", str(path))
    assert done.stdout.startswith("1 node with 8 x NVIDIA-H100-80GB-HBM3: gpu-1\n")
    assert "memory total 79.65 GiB" in done.stdout  # 81,559 MiB


def test_explain_takes_a_flag_as_it_is_written(workload: Path, tmp_path: Path) -> None:
    out = tmp_path / "deploy"
    run("plan", str(workload), "--output-dir", str(out))
    done = run("explain", str(out), "--max-model-len")
    assert done.returncode == 0
    assert done.stdout.startswith("chat.max-model-len = ")


def test_explain_an_infeasible_plan(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(WORKLOAD.replace("Llama-3.1-8B", "Llama-3.1-405B"))
    plan = tmp_path / "plan.yaml"
    plan.write_text(run("plan", str(path), "-f", "yaml").stdout)
    done = run("explain", str(plan))
    assert done.returncode == 0
    assert done.stdout.startswith("no feasible plan: ")


def test_size_reads_settings_as_vllm_would() -> None:
    args = ("size", "Qwen/Qwen3-8B", "--gpu", "h100-sxm", "-f", "json", "--set")
    eager = {v: json.loads(run(*args, f"enforce_eager={v}").stdout) for v in ("true", "false")}
    assert eager["true"]["memory"]["cuda_graphs"] == 0
    assert eager["false"]["memory"]["cuda_graphs"] > 0
    yarn = '{"max_position_embeddings": 65536}'
    stretched = json.loads(run(*args, f"hf_overrides={yarn}").stdout)
    assert stretched["max_model_len"]["derived_limit"] == 65536
    for wrong in ("enforce_eager=maybe", "block_size=abc", "nnodes=x", "hf_overrides=x", "x"):
        done = run(*args, wrong)
        assert done.returncode == 2, wrong
        assert "bug" not in done.stderr


def test_check_files_folders_and_standard_input(tmp_path: Path) -> None:
    manifest = (
        "kind: Pod\nmetadata: {name: p}\nspec:\n  nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}"
        "\n  containers:\n  - image: vllm/vllm-openai:v0.33.0\n    args: [Qwen/Qwen3-8B]\n"
    )
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "p.yaml").write_text(manifest)
    (tmp_path / "s.sh").write_text("vllm serve Qwen/Qwen3-8B --max-model-len 512\n")
    done = run("check", "deploy", "s.sh", "-", "-f", "json", stdin=manifest, cwd=tmp_path)
    report = json.loads(done.stdout)
    assert done.returncode == 1  # 40,960 tokens do not fit an L4
    assert [one["kind"] for one in report["instances"]] == ["kubernetes", "shell", "kubernetes"]
    assert [one["gpu"] for one in report["instances"]] == ["l4", None, "l4"]
    errors = [f for f in report["findings"] if f["severity"] == "error"]
    assert {f["location"]["file"] for f in errors} == {"-", "deploy/p.yaml"}
    assert {f["location"]["file"] for f in report["findings"]} == {"-", "deploy/p.yaml"}
    table = run("check", "deploy", cwd=tmp_path)
    assert "Pod/p: Qwen/Qwen3-8B; vLLM 0.33.0 (deploy/p.yaml:6:5); 1 x l4" in " ".join(
        table.stdout.split()
    )


def test_check_with_a_kind_that_is_named() -> None:
    text = "model: Qwen/Qwen3-8B\nno-such: 1\nother: 2\nthird: 3\n"
    unknown = run("check", "-", stdin=text)
    assert unknown.returncode == 2
    assert "--kind" in unknown.stderr
    told = run("check", "-", "--kind", "config", stdin=text)
    assert told.returncode == 1
    assert told.stdout.count("FLG001 unknown-flag") == 3
