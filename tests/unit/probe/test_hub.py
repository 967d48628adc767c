"""fetch_hub_model against a Hub on this machine: token, redirects, refusals, ranges, cache."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from vllm_advisor.errors import InputError, UnknownFactError
from vllm_advisor.probe import hub_http
from vllm_advisor.probe.hub import fetch_hub_model

CONFIG = {"architectures": ["Qwen3ForCausalLM"], "hidden_size": 64}
HEADER = json.dumps(
    # 32 x 64 BF16 = 4,096 bytes and 64 x F32 = 256 bytes
    {
        "embed": {"dtype": "BF16", "shape": [32, 64], "data_offsets": [0, 4096]},
        "norm": {"dtype": "F32", "shape": [64], "data_offsets": [4096, 4352]},
    }
).encode()
SAFETENSORS = struct.pack("<Q", len(HEADER)) + HEADER + bytes(4352)


@dataclass(kw_only=True)
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    length: int | None = None  # Content-Length to claim; -1 for none
    wait: threading.Event | None = None


@dataclass(kw_only=True)
class Hub:
    """A server, what it answers by path, and what it was asked."""

    url: str
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[tuple[str, Message]] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def sent(self, header: str) -> list[str | None]:
        return [headers.get(header) for _, headers in self.requests]

    def serve(self, name: str, answer: Any, *, model: str = "acme/tiny", rev: str = "main") -> None:
        if not isinstance(answer, Answer):
            answer = Answer(body=json.dumps(answer).encode())
        self.answers[f"/{model}/resolve/{rev}/{name}"] = answer


def start_hub() -> tuple[Hub, ThreadingHTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.requests.append((self.path, self.headers))
            missing = Answer(status=404, headers={"X-Error-Code": "EntryNotFound"})
            answer = hub.answers.get(self.path, missing)
            if answer.wait is not None:
                answer.wait.wait(5)
            status, body, headers = answer.status, answer.body, dict(answer.headers)
            asked = self.headers.get("Range")
            if asked and answer.ranges and status == 200:
                first, last = (int(n) for n in asked.removeprefix("bytes=").split("-"))
                headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
                status, body = 206, body[first : last + 1]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            length = len(body) if answer.length is None else answer.length
            if length >= 0:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:  # a client that hangs up early
            pass

    server = Server(("127.0.0.1", 0), Handler)
    hub = Hub(url=f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    return hub, server


@pytest.fixture
def hubs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Hub, Hub]]:
    """Two servers, the first being HF_ENDPOINT; no token, no proxy, an empty cache."""
    for name in list(os.environ):
        if name.startswith(("HF_", "HUGGING", "TRANSFORMERS_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    running = [start_hub(), start_hub()]
    monkeypatch.setenv("HF_ENDPOINT", running[0][0].url)
    yield running[0][0], running[1][0]
    for _, server in running:
        server.shutdown()
        server.server_close()


@pytest.fixture
def hub(hubs: tuple[Hub, Hub]) -> Hub:
    hubs[0].serve("config.json", CONFIG)
    return hubs[0]


def cache(
    tmp_path: Path, files: dict[str, Any], *, commit: str = "0a1b2c", rev: str = "main"
) -> None:
    root = tmp_path / "hf" / "hub" / "models--acme--tiny"
    ref = root / "refs" / rev
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit, encoding="utf-8")
    for name, content in files.items():
        path = root / "snapshots" / commit / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


# --- what is read ---------------------------------------------------------------------------


def test_sharded_model(hub: Hub) -> None:
    hub.serve("hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4"}})
    hub.serve("model.safetensors.index.json", {"metadata": {"total_size": 4352}, "weight_map": {}})
    model = fetch_hub_model("acme/tiny")
    assert model.model_id == "acme/tiny"
    assert model.config == CONFIG
    assert model.hf_quant_config == {"quantization": {"quant_algo": "NVFP4"}}
    assert model.checkpoint_bytes == 4352
    assert model.tensor_bytes is None
    assert model.source == "hf:acme/tiny"
    assert model.config_uri == "hf:acme/tiny/config.json"
    assert model.notes == ()
    # the index is enough: no weight file is touched
    assert [path.rsplit("/", 1)[1] for path in hub.paths] == [
        "config.json",
        "hf_quant_config.json",
        "model.safetensors.index.json",
    ]
    assert hub.sent("Authorization") == [None] * 3


@pytest.mark.parametrize("ranges", [True, False])
def test_single_file_is_read_by_its_header(hub: Hub, *, ranges: bool) -> None:
    hub.serve("model.safetensors", Answer(body=SAFETENSORS, ranges=ranges))
    model = fetch_hub_model("acme/tiny")
    assert model.checkpoint_bytes == 4352
    assert model.bytes_by_dtype == {"BF16": 4096, "F32": 256}
    assert model.tensor_bytes == {"embed": 4096, "norm": 256}
    assert model.notes == ()
    assert hub.sent("Range")[-2:] == ["bytes=0-7", f"bytes=8-{8 + len(HEADER) - 1}"]


def test_no_safetensors_is_a_note(hub: Hub) -> None:
    model = fetch_hub_model("acme/tiny")
    assert model.checkpoint_bytes is None
    assert model.hf_quant_config is None
    assert model.notes == ("no safetensors weights: their size is not known",)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(status=403), "gated or private"),
        (Answer(body=struct.pack("<Q", 1 << 62)), "is no length of a safetensors header"),
        # 60 MB: a header the format allows, and larger than this tool reads
        (Answer(body=struct.pack("<Q", 60_000_000) + b"{}"), "larger than 47.68 MiB"),
        (Answer(body=SAFETENSORS[:20]), "is no JSON"),
    ],
)
def test_weights_that_cannot_be_sized_leave_the_config(hub: Hub, answer: Answer, why: str) -> None:
    hub.serve("model.safetensors", answer)
    model = fetch_hub_model("acme/tiny")
    assert model.config == CONFIG
    assert model.checkpoint_bytes is None
    (note,) = model.notes
    assert note.startswith("size of the weights not known: ")
    assert why in note


def test_quantization_that_cannot_be_read_is_no_silent_default(hub: Hub) -> None:
    hub.serve("hf_quant_config.json", Answer(status=500))
    with pytest.raises(UnknownFactError, match="the Hub failed") as caught:
        fetch_hub_model("acme/tiny")
    assert caught.value.where.endswith("/hf_quant_config.json")


def test_revision_and_model_without_organisation(hubs: tuple[Hub, Hub]) -> None:
    hubs[0].serve("config.json", CONFIG, model="gpt2", rev="refs%2Fpr%2F1")
    model = fetch_hub_model("gpt2", revision="refs/pr/1")
    assert model.source == "hf:gpt2@refs/pr/1"


# --- the token ------------------------------------------------------------------------------


def test_token_is_sent(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", " hf_secret\n")
    fetch_hub_model("acme/tiny")
    assert set(hub.sent("Authorization")) == {"Bearer hf_secret"}


def test_token_of_hf_auth_login(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "token").write_text("hf_home\n", encoding="utf-8")
    fetch_hub_model("acme/tiny")
    (tmp_path / "elsewhere").write_text("hf_path", encoding="utf-8")
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "elsewhere"))
    fetch_hub_model("acme/tiny")
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
    fetch_hub_model("acme/tiny")
    sent = hub.sent("Authorization")
    assert list(dict.fromkeys(sent)) == ["Bearer hf_home", "Bearer hf_path", None]


def redirect(to: str) -> Answer:
    return Answer(status=302, headers={"Location": to})


def test_token_stays_home_on_a_redirect_to_another_port(
    hubs: tuple[Hub, Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = hubs
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    home.serve("config.json", redirect(f"{away.url}/cdn/config.json"))
    away.answers["/cdn/config.json"] = Answer(body=json.dumps(CONFIG).encode())
    assert fetch_hub_model("acme/tiny").config == CONFIG
    assert home.sent("Authorization")[0] == "Bearer hf_secret"
    assert away.paths == ["/cdn/config.json"]
    assert away.sent("Authorization") == [None]


def test_token_stays_home_on_a_redirect_to_another_host(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    away = hub.url.replace("127.0.0.1", "localhost")
    hub.serve("config.json", redirect(f"{away}/cdn/config.json"))
    hub.answers["/cdn/config.json"] = Answer(body=json.dumps(CONFIG).encode())
    fetch_hub_model("acme/tiny")
    assert dict(zip(hub.paths, hub.sent("Authorization"), strict=True))["/cdn/config.json"] is None


def test_token_goes_with_a_redirect_within_the_hub(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A renamed model: the Hub answers with a path on itself.
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.serve("config.json", redirect("/acme/new/resolve/main/config.json"))
    hub.serve("config.json", CONFIG, model="acme/new")
    fetch_hub_model("acme/tiny")
    assert hub.sent("Authorization")[:2] == ["Bearer hf_secret"] * 2


@pytest.mark.parametrize("scheme", ["file", "ftp"])
def test_redirect_out_of_the_web_is_refused(hub: Hub, tmp_path: Path, scheme: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    hub.serve("config.json", redirect(f"{scheme}://{tmp_path}/config.json"))
    with pytest.raises(UnknownFactError) as caught:
        fetch_hub_model("acme/tiny")
    assert "HTTP 302" in caught.value.what or "unknown url type: ftp" in caught.value.what


def test_token_no_header_can_carry_is_not_shown(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret\r\nX-Other: 1")
    with pytest.raises(UnknownFactError) as caught:
        fetch_hub_model("acme/tiny")
    assert caught.value.where == "HF_TOKEN"
    assert "secret" not in caught.value.what + caught.value.fix
    assert hub.requests == []


# --- refusals and failures ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "token", "what", "fix"),
    [
        (401, "GatedRepo", "", "gated or private", "set HF_TOKEN and accept the model's licence"),
        (403, "GatedRepo", "hf_x", "refuses this token", "accept the model's licence"),
        (401, "", "", "gated or private, or the id is wrong", "set HF_TOKEN"),
        (401, "RepoNotFound", "", "no such model", "set HF_TOKEN if it is private"),
        (404, "RepoNotFound", "hf_x", "no such model", "check that HF_TOKEN may read it"),
        (404, "", "", "no such model", "check the id"),
        (404, "RevisionNotFound", "", "no such revision", "name a branch, tag or commit"),
        (404, "EntryNotFound", "", "no such file", "GGUF"),
        (429, "", "", "limits this address", "HF_TOKEN"),
        (503, "", "", "the Hub failed", "bundled profile"),
    ],
)
def test_refusals(
    hub: Hub,
    monkeypatch: pytest.MonkeyPatch,
    *,
    status: int,
    code: str,
    token: str,
    what: str,
    fix: str,
) -> None:
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    headers = {"X-Error-Code": code} if code else {}
    hub.serve("config.json", Answer(status=status, headers=headers, body=b"no"))
    with pytest.raises(UnknownFactError) as caught:
        fetch_hub_model("acme/tiny")
    assert what in caught.value.what
    assert f"HTTP {status}" in caught.value.what
    assert caught.value.where == f"{hub.url}/acme/tiny/resolve/main/config.json"
    assert fix in caught.value.fix
    assert caught.value.exit_code == 3


def test_timeout(hub: Hub) -> None:
    done = threading.Event()
    hub.serve("config.json", Answer(wait=done))
    try:
        with pytest.raises(UnknownFactError, match=r"no answer within 0\.1 s") as caught:
            fetch_hub_model("acme/tiny", timeout=0.1)
    finally:
        done.set()
    assert "folder with config.json" in caught.value.fix


def test_nobody_listens(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(UnknownFactError, match="cannot reach the Hub") as caught:
            fetch_hub_model("acme/tiny")
    assert "bundled profile" in caught.value.fix


def test_tls_failure(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url.replace("http://", "https://"))
    with pytest.raises(UnknownFactError, match="TLS connection failed") as caught:
        fetch_hub_model("acme/tiny")
    assert "SSL_CERT_FILE" in caught.value.fix


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"[]", b"\xff\xfe"])
def test_body_that_is_no_json_object(hub: Hub, body: bytes) -> None:
    hub.serve("config.json", Answer(body=body))
    with pytest.raises(UnknownFactError, match="no JSON object") as caught:
        fetch_hub_model("acme/tiny")
    assert "login page" in caught.value.fix


def test_body_cut_off(hub: Hub) -> None:
    hub.serve("config.json", Answer(body=b'{"a": 1}', length=100))
    with pytest.raises(UnknownFactError, match="cut off"):
        fetch_hub_model("acme/tiny")


def test_body_that_claims_to_be_too_large(hub: Hub) -> None:
    hub.serve("config.json", Answer(body=b"{}", length=50_000_001))
    with pytest.raises(UnknownFactError, match="larger than"):
        fetch_hub_model("acme/tiny")


def test_body_that_is_too_large_without_saying_so(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_http, "MAX_BODY_BYTES", 1000)
    hub.serve("config.json", Answer(body=b" " * 1001, length=-1))
    with pytest.raises(UnknownFactError, match="larger than"):
        fetch_hub_model("acme/tiny")


@pytest.mark.parametrize(
    "model_id",
    ["", "a/b/c", "../etc", "acme/..", "acme/tiny?x=1", "acme/ti ny", "-acme/tiny", "acme/tiny.git",
     "acme--x/tiny", "acme/tiny/", "https://huggingface.co/acme/tiny", "acme/tiny#", "äcme/tiny"],
)  # fmt: skip
def test_ids_that_are_none_ask_nobody(hub: Hub, model_id: str) -> None:
    with pytest.raises(UnknownFactError, match="no model id"):
        fetch_hub_model(model_id)
    assert hub.requests == []


@pytest.mark.parametrize("revision", ["", "../x", "/etc", "a b", "main?x"])
def test_revisions_that_are_none_ask_nobody(hub: Hub, revision: str) -> None:
    with pytest.raises(UnknownFactError, match="no revision"):
        fetch_hub_model("acme/tiny", revision=revision)
    assert hub.requests == []


@pytest.mark.parametrize(
    "endpoint", ["ftp://hub", "file:///etc", "hub.local", "http://", "http://["]
)
def test_endpoint_that_is_none(hub: Hub, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    with pytest.raises(UnknownFactError, match="no web address") as caught:
        fetch_hub_model("acme/tiny")
    assert caught.value.where == "HF_ENDPOINT"


def test_proxy_is_used(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.invalid/")
    monkeypatch.setenv("http_proxy", hub.url)
    url = "http://hub.invalid/acme/tiny/resolve/main/config.json"
    hub.answers[url] = Answer(body=json.dumps(CONFIG).encode())
    assert fetch_hub_model("acme/tiny").config == CONFIG
    assert hub.paths[0] == url


# --- the cache ------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_reads_the_cache(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    cache(tmp_path, {"config.json": {"cached": 1}})
    model = fetch_hub_model("acme/tiny")
    assert model.config == {"cached": 1}
    assert model.model_id == "acme/tiny"
    assert model.source == "hf:acme/tiny"
    assert "read from the local Hub cache, commit 0a1b2c" in model.notes
    assert hub.requests == []


def test_offline_without_a_cached_copy(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "true")
    with pytest.raises(UnknownFactError, match="not in the local Hub cache") as caught:
        fetch_hub_model("acme/tiny")
    assert caught.value.exit_code == 3
    assert hub.requests == []


def test_whole_cached_model_asks_nobody(hub: Hub, tmp_path: Path) -> None:
    cache(tmp_path, {"config.json": {"cached": 1}, "model.safetensors": SAFETENSORS})
    model = fetch_hub_model("acme/tiny")
    assert model.config == {"cached": 1}
    assert model.checkpoint_bytes == 4352
    assert hub.requests == []


def test_cached_config_without_weights_gives_way_to_the_hub(hub: Hub, tmp_path: Path) -> None:
    cache(tmp_path, {"config.json": {"cached": 1}})
    hub.serve("model.safetensors", Answer(body=SAFETENSORS))
    model = fetch_hub_model("acme/tiny")
    assert model.config == CONFIG
    assert model.checkpoint_bytes == 4352


def test_cached_config_serves_when_the_hub_fails(hub: Hub, tmp_path: Path) -> None:
    cache(tmp_path, {"config.json": {"cached": 1}})
    hub.serve("config.json", Answer(status=503))
    model = fetch_hub_model("acme/tiny")
    assert model.config == {"cached": 1}
    assert model.notes[-1] == "the Hub could not be asked: the Hub failed (HTTP 503)"


def test_cache_by_commit_and_by_variable(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    cache(tmp_path, {"config.json": {"cached": 2}}, commit="ffee", rev="v2")
    assert fetch_hub_model("acme/tiny", revision="ffee").config == {"cached": 2}
    assert fetch_hub_model("acme/tiny", revision="v2").source == "hf:acme/tiny@v2"
    with pytest.raises(UnknownFactError):
        fetch_hub_model("acme/tiny")  # there is no refs/main
    (tmp_path / "hf").rename(tmp_path / "moved")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "moved" / "hub"))
    assert fetch_hub_model("acme/tiny", revision="v2").config == {"cached": 2}


def test_broken_cached_config_is_the_files_fault(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    cache(tmp_path, {"config.json": b"{"})
    with pytest.raises(InputError, match="broken JSON"):
        fetch_hub_model("acme/tiny")
