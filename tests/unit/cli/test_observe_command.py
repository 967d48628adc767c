from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from fake_metrics import Counted, answering, vllm
from fake_prometheus import Remembered
from forked_cli import run_cli

from vllm_advisor.api.observing import _address
from vllm_advisor.units import format_seconds, parse_seconds

CACHE = {"enable_prefix_caching": "True", "cache_dtype": "auto", "gpu_memory_utilization": "0.9"}


def loaded(**changed: object) -> Counted:
    made = Counted(
        running=5, usage=0.4, hits=400, started=time.time() - 1000, cache=CACHE, **changed
    )  # type: ignore[arg-type]
    for _ in range(200):
        made.request(900, 120)
    return made


@contextmanager
def server(engine: Counted | None = None, *, root: str = "qwen3-8b") -> Iterator[str]:
    engine = engine or loaded()
    with answering(vllm(engine.text, length=16_384, root=root)) as url:
        yield url


def test_a_server_and_what_a_plan_would_change(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    with server() as url:
        run = run_cli(
            *("observe", f"{url}/metrics", "--since-start"),
            *("--gpu", "h100-sxm", "--gpu-count", "2"),
            *("--ttft-ms", "900", "-o", str(file)),
        )
    assert run.returncode == 0, run.stderr
    assert re.search(r"200 requests ended in 16\.[678] min since the start: 0\.\d+ per", run.stdout)
    assert "now 2 GPUs h100-sxm" in run.stdout
    assert "is assumed" not in run.stdout
    assert "planned 1 GPU" in run.stdout
    assert "saves $" in run.stdout
    assert f"wrote {file}; now: vllm-advisor plan {file}" in run.stderr
    written = yaml.safe_load(file.read_text())
    assert written["model"] == "qwen3-8b"
    assert written["hardware"] == {"gpu": "h100-sxm", "count": 2}
    assert written["vllm_version"] == "0.32.0"
    assert written["classes"][0]["slo"] == {"ttft_ms": 900.0}
    again = run_cli("plan", str(file), "--format", "json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["cost"]["gpus"] == 1


def test_json_has_everything() -> None:
    with server() as url:
        run = run_cli("observe", url, "--since-start", "--gpu", "h100-sxm", "-f", "json")
    found = json.loads(run.stdout)
    assert found["schema_version"] == "1"
    assert found["requests"]["by_reason"] == {"stop": 200}
    assert found["tokens"]["prompt"]["mean"] == 900
    assert found["latency_ms"]["ttft"]["mean"] == pytest.approx(200)
    assert found["plan"]["gpus_planned"] == 1
    assert found["plan"]["saves_usd_per_hour"] == 0
    changed = {change["setting"]: change for change in found["plan"]["settings"]}
    assert changed["max_model_len"]["now"] == 16_384
    assert changed["max_model_len"]["planned"] < 16_384
    assert changed["max_num_seqs"]["now"] is None
    assert "kv_cache_dtype" not in changed
    assert "enable_prefix_caching" not in changed  # it is on, and stays on
    assert yaml.safe_load(found["workload"])["classes"][0]["name"] == found["classes"][0]["name"]


def test_a_plugin_that_says_what_the_engine_is() -> None:
    info = {
        "gpu": "NVIDIA H100 80GB HBM3",
        "gpus": "2",
        "tensor_parallel_size": "2",
        "max_num_seqs": "256",
    }
    with server(loaded(info=info)) as url:
        run = run_cli("observe", url, "--since-start", "-f", "json")
        other = run_cli("observe", url, "--since-start", "-f", "json", "--gpu", "l40s")
    plan = json.loads(run.stdout)["plan"]
    assert (plan["gpu"], plan["gpus_now"], plan["gpus_planned"]) == ("h100-sxm", 2, 1)
    assert not plan["gpus_assumed"]
    changed = {change["setting"]: change for change in plan["settings"]}
    assert (changed["max_num_seqs"]["now"], changed["max_num_seqs"]["planned"]) == ("256", 8)
    assert changed["tensor_parallel_size"]["planned"] == 1  # the plan leaves it at the default
    assert "pipeline_parallel_size" not in changed
    assert json.loads(other.stdout)["plan"]["gpu"] == "l40s"  # who gives one, knows better


def test_without_a_gpu_there_is_a_workload_for_check_and_no_plan(tmp_path: Path) -> None:
    file = tmp_path / "traffic.yaml"
    with server() as url:
        run = run_cli("observe", url, "--since-start", "-o", str(file))
    assert run.returncode == 0
    assert "not planned: vLLM's metrics do not say" in run.stdout
    assert set(yaml.safe_load(file.read_text())) == {"classes"}
    command = "vllm serve qwen3-8b --max-model-len 512"
    check = run_cli(
        *("check", "--workload", str(file), "--gpu", "h100-sxm", "--format", "json", "--"),
        *command.split(),
    )
    assert check.returncode == 1  # prompts of up to 1,000 tokens do not fit into 512
    assert json.loads(check.stdout)["findings"]


def test_a_model_that_is_not_known_is_no_failure_of_observing() -> None:
    with server(root="/models/secret") as url:
        run = run_cli("observe", url, "--since-start", "--gpu", "h100-sxm")
    assert run.returncode == 0
    assert "not planned: " in run.stdout
    assert "As a workload" in run.stdout


def test_a_load_that_the_gpus_do_not_hold() -> None:
    engine = loaded()
    engine.started = time.time() - 1.0  # 200 requests a second
    with server(engine, root="meta-llama/Llama-3.3-70B-Instruct") as url:
        run = run_cli(
            *("observe", url, "--since-start", "--gpu", "l40s", "--gpu-count", "4"),
            *("--ttft-ms", "500"),
        )
    assert run.returncode == 0
    assert "they do not hold this load" in run.stdout


def test_a_prometheus(tmp_path: Path) -> None:
    of = Remembered(engines={"a:8000": loaded(), "b:8000": loaded(), "c:8000": loaded(model="m2")})
    file = tmp_path / "w.yaml"
    with answering(of.answer) as url:
        run = run_cli(
            *("observe", url, "--window", "1d", "--served-model", "tiny", "--model", "qwen3-8b"),
            *("--gpu", "h100-sxm", "--keep-latency", "-o", str(file)),
        )
        several = run_cli("observe", url)
        start = run_cli("observe", url, "--served-model", "tiny", "--since-start")
    assert run.returncode == 0, run.stderr
    assert "now 2 GPUs h100-sxm" in run.stdout  # one for each engine
    assert "one GPU for each engine is assumed" in run.stdout
    assert "a:8000/0" in run.stdout
    slo = yaml.safe_load(file.read_text())["classes"][0]["slo"]
    assert set(slo) == {"ttft_ms", "itl_ms", "e2e_ms"}
    assert 100 <= slo["ttft_ms"] <= 250  # 200 ms, in the bucket from 100 to 250
    assert several.returncode == 2
    assert "choose one: --served-model" in several.stderr
    assert start.returncode == 2
    assert "--window 24h" in start.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("ftp://x",), 2, "no http or https URL"),
        (("http://127.0.0.1:9",), 3, "cannot reach the server"),
        (("http://127.0.0.1:9", "--window", "soon"), 2, "is no time"),
        (("http://127.0.0.1:9", "--window", "0s"), 2, "is no time"),
        (("http://127.0.0.1:9", "--window", "9999d"), 2, "more than a year"),
        (("http://127.0.0.1:9", "--gpu", "h1000"), 3, "h1000"),
        (("http://127.0.0.1:9", "--match", "a=b"), 2, "no list of label matchers"),
        (("http://127.0.0.1:9", "--header", "x"), 2, "no header"),
    ],
)
def test_what_cannot_be_observed(words: tuple[str, ...], code: int, says: str) -> None:
    run = run_cli("observe", *words)
    assert run.returncode == code, run.stderr
    assert says in run.stderr
    assert "Traceback" not in run.stderr
    assert not run.stdout


def test_what_is_neither() -> None:
    with answering(lambda _: (200, "hello")) as url:
        run = run_cli("observe", url)
    assert run.returncode == 3
    assert "neither vLLM's metrics nor a Prometheus" in run.stderr


def test_options_that_are_prometheus_own() -> None:
    with server() as url:
        run = run_cli("observe", url, "--match", 'a="b"')
    assert run.returncode == 2
    assert "a vLLM server itself" in run.stderr


def test_a_file_of_other_content_stays(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text("mine\n")
    with server() as url:
        run = run_cli("observe", url, "--since-start", "-o", str(file))
        assert run.returncode == 2
        assert file.read_text() == "mine\n"
        over = run_cli("observe", url, "--since-start", "-o", str(file), "--overwrite")
    assert over.returncode == 0
    assert "classes:" in file.read_text()


def test_names_that_try_to_be_more_than_names(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    evil = "x\\n# [red]evil[/red]\\u001b[31m"
    engine = loaded(model=evil)
    with server(engine, root='a": {b: c}\n- d') as url:
        run = run_cli("observe", url, "--since-start", "--gpu", "h100-sxm", "-o", str(file))
    assert run.returncode == 0
    assert "\x1b" not in run.stdout
    assert yaml.safe_load(file.read_text())["model"] == 'a": {b: c}\n- d'


def test_addresses_of_pages_are_those_of_servers() -> None:
    for page in ("", "/", "/metrics", "/v1", "/metrics/"):
        assert _address(f"http://h:8000{page}") == "http://h:8000"
    assert _address("https://p/prometheus/api/v1") == "https://p/prometheus"


def test_times() -> None:
    assert [parse_seconds(t) for t in ("90", "90s", "1.5m", "24h", "7d", "1w")] == [
        90, 90, 90, 86_400, 604_800, 604_800
    ]  # fmt: skip
    for text in ("", "0", "-1s", "5x", "1H", "soon"):
        with pytest.raises(ValueError, match="is no time"):
            parse_seconds(text)
    assert [format_seconds(s) for s in (90, 300, 9000, 604_800)] == [
        "90 s", "5 min", "2.5 h", "7 days"
    ]  # fmt: skip
