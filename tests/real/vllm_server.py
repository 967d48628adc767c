"""Boots the real vLLM on this machine's CPU with a model that is nothing but a config.json."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# One line, or two up to 0.22 or so.
CAPACITY = re.compile(
    r"KV cache size: ([\d,]+) tokens(?:, |\n.*?)"
    r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x"
)
TINY_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BootResult:
    """What the server printed until it was healthy, and its two numbers.

    ``max_concurrency`` is as logged, rounded to two decimals, at ``max_model_len`` tokens.
    """

    log: str
    kv_tokens: int
    max_model_len: int
    max_concurrency: float


class BootError(RuntimeError):
    """The server did not become healthy; the message ends with its log."""


def write_model(folder: Path, **config: object) -> Path:
    """A model folder that ``--load-format dummy`` can serve: Llama's shape, changed by ``config``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(TINY_LLAMA | config, indent=2)
    (folder / "config.json").write_text(text, encoding="utf-8")
    return folder


def boot(
    model: Path,
    *args: str,
    script: Path | None = None,
    kv_cache_gib: int = 1,
    env: dict[str, str] | None = None,
    timeout: float = 300,
) -> BootResult:
    """Start ``vllm serve`` on a free loopback port, wait for ``/health``, end it (60 s).

    Args:
        model: folder with a config.json.
        args: more words of the command.
        script: a rendered ``serve-*.sh`` to run instead of ``vllm serve MODEL``.
        kv_cache_gib: size of the KV cache (VLLM_CPU_KVCACHE_SPACE); the CPU build takes it from
            there and not from a share of the memory.
        env: more environment variables.
        timeout: seconds until it has to be healthy.

    Raises:
        BootError: it ended, or was not healthy in time.
    """
    with launched(model, *args, script=script, kv_cache_gib=kv_cache_gib, env=env) as server:
        server.wait(timeout)
    log = server.log()
    found = CAPACITY.search(log)
    if found is None:
        raise BootError(f"no KV cache size in the log:\n{log[-8000:]}")
    return BootResult(
        log=log,
        kv_tokens=int(found[1].replace(",", "")),
        max_model_len=int(found[2].replace(",", "")),
        max_concurrency=float(found[3]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A ``vllm serve`` that was started; ``wait`` until it is healthy."""

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def wait(self, timeout: float = 300) -> None:
        """Until it answers ``/health``.

        Raises:
            BootError: it ended, or was not healthy in time.
        """
        if not _wait(self.process, self.port, time.monotonic() + timeout):
            raise BootError(f"vllm serve ended with {self.process.poll()}:\n{self.log()[-8000:]}")

    def end(self) -> None:
        _end(self.process)


@contextmanager
def launched(
    model: Path,
    *args: str,
    script: Path | None = None,
    kv_cache_gib: int = 1,
    env: dict[str, str] | None = None,
    python: str = sys.executable,
) -> Iterator[Server]:
    """Start ``vllm serve`` on a free loopback port; it is ended in any case.

    Weights are random, and nothing is compiled. Without a tokenizer.json there is no tokenizer.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = [python, "-m", "vllm.entrypoints.cli.main", "serve", str(model)]
    command = [
        *(["bash", str(script)] if script else start),
        *("--load-format", "dummy", "--enforce-eager"),
        *(() if (model / "tokenizer.json").exists() else ("--skip-tokenizer-init",)),
        *("--host", "127.0.0.1", "--port", str(port)),
        *args,
    ]
    environment = os.environ | {
        "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gib),
        "VLLM_CACHE_ROOT": str(model / "vllm-cache"),
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "NO_PROXY": "127.0.0.1",
        "PATH": f"{Path(python).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    log_path = model / f"boot-{port}.log"
    with log_path.open("w", encoding="utf-8") as log_file:
        process = subprocess.Popen(
            command,
            stdout=log_file,
            stderr=subprocess.STDOUT,
            env=environment | (env or {}),
            start_new_session=True,  # its workers are in its process group
        )
        try:
            yield Server(process=process, port=port, log_path=log_path)
        finally:
            _end(process)


def _wait(server: subprocess.Popen[bytes], port: int, deadline: float) -> bool:
    while time.monotonic() < deadline and server.poll() is None:
        with (
            suppress(urllib.error.URLError, OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer,
        ):
            if answer.status == 200:
                return True
        time.sleep(0.5)
    return False


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server and its workers by their process group."""
    for sent, patience in ((signal.SIGTERM, 20), (signal.SIGKILL, 10)):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, sent)
        with suppress(subprocess.TimeoutExpired):
            server.wait(patience)
    with suppress(ProcessLookupError):  # workers that outlived the server
        os.killpg(server.pid, signal.SIGKILL)
