"""The command line in a process of its own, forked from one that has imported it all before.

As ``python -m vllm_advisor`` it has its own streams, folder, environment and exit code, without a
second for imports and profiles in each of hundreds of tests. Run as a program this file is the
process to fork from: a request is a line of JSON, the answer a line with the exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_STREAMS = ("stdin", "stdout", "stderr")


def run_cli(
    *words: str,
    stdin: str | bytes = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``vllm-advisor WORDS``; ``env`` is added to this process's variables."""
    settings = {**os.environ, "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", **(env or {})}
    with tempfile.TemporaryDirectory() as scratch:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        Path(scratch, _STREAMS[0]).write_bytes(data)
        request = {"words": words, "streams": scratch, "cwd": str(cwd or "."), "env": settings}
        request["cwd"] = str(Path(request["cwd"]).absolute())
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(scratch, name).read_text("utf-8") for name in _STREAMS[1:])
    return subprocess.CompletedProcess(list(words), code, out, err)


@cache
def _server() -> subprocess.Popen[str]:
    """The process to fork from; it ends when this one does, at the end of its input."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _serve() -> None:
    """Fork for each request, and answer with the exit code."""
    import vllm_advisor.cli
    from vllm_advisor.api.checking import check
    from vllm_advisor.api.planning import plan

    for module in pkgutil.iter_modules(vllm_advisor.cli.__path__):
        importlib.import_module(f"vllm_advisor.cli.{module.name}")
    check(["vllm", "serve", "Qwen/Qwen3-8B"], gpu="l4")  # reads profiles, which are kept
    plan("contract-review")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line), vllm_advisor.cli.main)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(request: Mapping[str, Any], main: Any) -> None:
    """In the child: take over streams, folder and environment, and be the command line."""
    for number, name in enumerate(_STREAMS):
        opened = os.open(Path(request["streams"], name), os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww")
    )
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["vllm-advisor", *request["words"]]
    try:
        main()
        code: Any = 0
    except SystemExit as left:
        code = left.code
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    _serve()
