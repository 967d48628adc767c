"""The plugin where a server is several processes, and where there is no server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_real_plugin import CHECKED, OF_OTHER_RELEASES, ask, metrics
from vllm_server import launched, write_model

pytestmark = [pytest.mark.vllm, pytest.mark.filterwarnings("ignore")]

ENGINES = 2
REQUESTS = 6
OFFLINE = """
import sys
from vllm import LLM, SamplingParams

if __name__ == "__main__":
    llm = LLM(
        sys.argv[1], load_format="dummy", skip_tokenizer_init=True, enforce_eager=True,
        max_model_len=512, disable_log_stats=False,
    )
    asked = SamplingParams(max_tokens=3, ignore_eos=True, detokenize=False)
    (answer,) = llm.generate([{"prompt_token_ids": [1, 2, 3]}], asked)
    print("answered", len(answer.outputs[0].token_ids))
"""


def test_engines_and_api_servers_side_by_side(tmp_path: Path) -> None:
    """With two engines vLLM starts two API servers; its shutdown kills them."""
    model = write_model(tmp_path / "model")
    words = ("--max-model-len", "4096", "--data-parallel-size", str(ENGINES))
    # 0.21 gives every engine a NUMA node of its own, unless told not to bind threads.
    with launched(model, *words, env={"VLLM_CPU_OMP_THREADS_BIND": "nobind"}) as server:
        server.wait()
        for number in range(REQUESTS):
            ask(server, model, 200 + number, 3)
        found = metrics(server)
        server.end()
        log = server.log()
    ours = {k.removeprefix("vllm_advisor:"): v for k, v in found.items() if "advisor" in k}
    assert ours["kv_cache_tokens"] == ENGINES * 524_288  # metrics() adds the engines
    assert ours["kv_cache_blocks"] == ours["kv_cache_blocks_expected"] == ENGINES * 4096
    assert ours["kv_cache_deviation"] == 0
    assert ours["requests_finished"] == found["vllm:request_success_total"] == REQUESTS
    assert ours["prompt_tokens"] == found["vllm:prompt_tokens_total"]
    assert ours["output_tokens"] == found["vllm:generation_tokens_total"]
    assert ours["prefix_cache_hits"] == found["vllm:prefix_cache_hits_total"]
    assert log.count("Started 2 API server processes") == 1
    assert len(CHECKED.findall(log)) == 1
    assert "WARNING" not in "\n".join(s for s in log.splitlines() if "vllm-advisor:" in s)
    last = [s for s in log.splitlines() if "at the end, all API servers together" in s]
    assert len(last) == ENGINES
    assert "KV cache 524,288 tokens in 4,096 blocks, as predicted" in last[0]
    assert "engine 1: at the end" in last[1]


@OF_OTHER_RELEASES
def test_a_program_that_serves_nothing_is_left_alone(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    script = tmp_path / "offline.py"
    script.write_text(OFFLINE, encoding="utf-8")
    own = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CACHE_ROOT": str(tmp_path / "cache"),
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        [sys.executable, str(script), str(model)],
        env=os.environ | own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "answered 3" in done.stdout
    assert "vllm-advisor:" not in done.stdout
