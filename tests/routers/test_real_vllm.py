"""Two real vLLM servers started by the plan's own scripts, behind the routers of the same plan."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import MASTER_KEY, SERVERS_KEY, Answer, Router, started_with, words_body

from vllm_advisor.api.planning import PlanReport, plan
from vllm_advisor.api.verifying import verify_routes
from vllm_advisor.routing import Router as Decider

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "real"))
from vllm_server import Server, launched, write_model  # noqa: E402

VLLM = Path(os.environ.get("VLLM_PYTHON", REPOSITORY / ".venv-vllm" / "bin" / "python"))
pytestmark = [
    pytest.mark.routers,
    pytest.mark.skipif(not VLLM.exists(), reason=f"no vLLM at {VLLM}: make test-routers"),
]
# Short prompts of up to 600 words beside documents of up to 3,000, on a model with 4,096 positions.
WORKLOAD = """
model: {model}
name: two-servers
vllm_version: "0.32.0"
hardware: {{gpu: l4, count: 2}}
classes:
  - name: chat
    prompt_tokens: {{p50: 100, p95: 400, max: 600}}
    output_tokens: {{p50: 20, p95: 50, max: 100}}
    concurrent_requests: 8
    slo: {{ttft_ms: 1000}}
  - name: documents
    prompt_tokens: {{p50: 2000, p95: 2800, max: 3000}}
    output_tokens: {{p50: 20, p95: 50, max: 100}}
    concurrent_requests: 2
constraints: {{short_context_tokens: 1024, max_gpus: 2}}
"""
TEMPLATE = "{% for message in messages %}{{ message['content'] }} {% endfor %}"


def write_tokenizer(folder: Path) -> None:
    """One token for each word, as far as it is known; what is not is one unknown token."""
    words = ["<unk>", "<s>", "</s>", "w", "word", "a", "b", "the"]
    vocabulary = {word: index for index, word in enumerate(words)}
    vocabulary |= {f"t{n}": n for n in range(len(words), 1024)}
    special = [
        {
            "id": vocabulary[word],
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for word in ("<unk>", "<s>", "</s>")
    ]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": "<s>",
                "eos_token": "</s>",
                "unk_token": "<unk>",
                "chat_template": TEMPLATE,
            }
        )
    )


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> PlanReport:
    folder = write_model(tmp_path_factory.mktemp("model"))
    write_tokenizer(folder)
    made = plan("workload.yaml", text=WORKLOAD.format(model=folder))
    lengths = {i.name: i.engine_args.get("max_model_len") for i in made.plan.deployment.instances}
    assert lengths == {"chat": 1024, "long-docs": 4096}
    return made


@pytest.fixture(scope="module")
def live(
    planned: PlanReport, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """Both servers, from the scripts that the plan writes, with an API key."""
    folder = tmp_path_factory.mktemp("scripts")
    model = Path(planned.plan.model)
    with contextlib.ExitStack() as stack:
        found = {}
        for artifact in planned.target_files(("serve",)):
            script = folder / artifact.path
            script.write_text(artifact.text)
            name = artifact.path.removeprefix("serve-").removesuffix(".sh")
            found[name] = stack.enter_context(
                launched(
                    model,
                    script=script,
                    python=str(VLLM),
                    env={"VLLM_API_KEY": SERVERS_KEY, "VLLM_CPU_OMP_THREADS_BIND": "nobind"},
                )
            )
        for server in found.values():
            server.wait()
        yield found


@pytest.fixture(scope="module", params=["envoy", "litellm", "nginx"])
def router(
    request: pytest.FixtureRequest,
    planned: PlanReport,
    live: dict[str, Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Router]:
    urls = {name: [f"http://127.0.0.1:{server.port}"] for name, server in live.items()}
    folder = tmp_path_factory.mktemp(request.param)
    with started_with(request.param, planned, urls, folder) as running:
        yield running


def ask(router: Router, planned: PlanReport, words: int, **more: object) -> Answer:
    key = MASTER_KEY if router.target == "litellm" else SERVERS_KEY
    body = words_body(words, model=planned.plan.model, max_tokens=1, **more)
    return router.ask(body, headers={"authorization": f"Bearer {key}"})


def instance(answer: Answer) -> str | None:
    """Which instance answered, by what the router says."""
    by_id = answer.headers.get("x-litellm-model-id", "").rpartition(":")[2]
    return answer.instance or by_id.removesuffix("-1") or None


@pytest.mark.parametrize(("words", "lands"), [(10, "chat"), (200, "chat"), (1500, "long-docs"), (2900, "long-docs")])  # fmt: skip
def test_short_lands_on_short_and_long_on_long(
    router: Router, planned: PlanReport, words: int, lands: str
) -> None:
    assert planned.plan.routing is not None
    assert Decider(planned.plan.routing).decide(prompt_tokens=words).instance == lands
    answer = ask(router, planned, words)
    assert answer.status == 200, answer.body
    assert instance(answer) == lands
    assert json.loads(answer.body)["usage"]["prompt_tokens"] == words


def test_what_nobody_reads_is_refused_clearly(router: Router, planned: PlanReport) -> None:
    answer = ask(router, planned, 5000)
    assert answer.status == 400
    text = answer.body.decode()
    assert "maximum context length" in text or "ContextWindowExceeded" in text


def test_what_the_short_server_refuses_goes_to_the_long_one(
    router: Router, planned: PlanReport
) -> None:
    """1,200 words of two bytes are short by their bytes, and more than the 1,024 it reads: 400."""
    route = planned.plan.routing.route("chat")
    assert len(words_body(1200, model=planned.plan.model)) < route.max_prompt_bytes
    answer = ask(router, planned, 1200)
    assert (answer.status, instance(answer)) == (200, "long-docs")


def test_vllm_cuts_an_answer_off_and_says_nothing(
    planned: PlanReport, live: dict[str, Server]
) -> None:
    """Why room is reserved: 900 tokens and an answer of 300 do not fit into 1,024."""
    alone = Router(target="vllm", port=live["chat"].port, backends={}, log=Path())
    body = words_body(900, model=planned.plan.model, max_tokens=300, ignore_eos=True)
    answer = alone.ask(body, headers={"authorization": f"Bearer {SERVERS_KEY}"})
    said = json.loads(answer.body)
    assert answer.status == 200
    assert said["usage"]["completion_tokens"] == 1024 - 900
    assert said["choices"][0]["finish_reason"] == "length"


def test_the_product_verifies_it(
    router: Router, planned: PlanReport, live: dict[str, Server], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By vLLM's own counters, which no router can talk into anything."""
    (artifact,) = planned.target_files(("routing",))
    (tmp_path / "routing.yaml").write_text(artifact.text)
    monkeypatch.setenv("KEY", MASTER_KEY if router.target == "litellm" else SERVERS_KEY)
    found = verify_routes(
        tmp_path,
        f"http://127.0.0.1:{router.port}",
        api_key_env="KEY",
        instances=[f"{name}=http://127.0.0.1:{server.port}" for name, server in live.items()],
    ).to_dict()
    assert {p["verdict"] for p in found["probes"]} <= {"ok", "not offered"}, found["probes"]


def test_short_down_falls_over_to_long(
    planned: PlanReport, live: dict[str, Server], tmp_path: Path
) -> None:
    """Last: the short server is ended for good."""
    urls = {name: [f"http://127.0.0.1:{server.port}"] for name, server in live.items()}
    with contextlib.ExitStack() as stack:
        routers = [
            stack.enter_context(started_with(target, planned, urls, tmp_path / target))
            for target in ("envoy", "litellm", "nginx")
        ]
        for each in routers:
            assert instance(ask(each, planned, 10)) == "chat"
        live["chat"].end()
        for each in routers:
            answer = ask(each, planned, 10)
            assert (each.target, answer.status, instance(answer)) == (
                each.target,
                200,
                "long-docs",
            )
