"""LMCache over several ranks, and Python hashes differently in each.

## What it checks
An LMCache connector (`--kv-transfer-config`, or `--kv-offloading-backend lmcache`) with more than
one rank, where `PYTHONHASHSEED` is not set beside the command.

## Why it matters
Keys of the cache are made with Python's hash, which is salted per process unless the variable is
set. Workers that salt differently never find what another one stored: the hit rate is 0 %.

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2 \
  --kv-transfer-config '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'
```

## Good
```bash
PYTHONHASHSEED=0 vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2 \
  --kv-transfer-config '{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}'
```

## Fix
`PYTHONHASHSEED=0` in the environment of every process.

## References
- https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED
- https://github.com/SemiAnalysisAI/InferenceX/issues/1262
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_RANKS = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")


@rule(
    id="PRF018",
    name="lmcache-without-hash-seed",
    severity=Severity.WARNING,
    flags=("kv_transfer_config", "kv_offloading_backend", *_RANKS),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Look for the connector, the ranks and the variable."""
    args = subject.args
    config = args.get("kv_transfer_config")
    names = str(config.get("kv_connector", "")) if isinstance(config, dict) else ""
    lmcache = "LMCache" in names or args.get("kv_offloading_backend") == "lmcache"
    ranks = 1
    for dest in _RANKS:
        size = args.get(dest)
        ranks *= size if isinstance(size, int) else 1
    seed = subject.command.env.get("PYTHONHASHSEED", "random")
    if not lmcache or ranks == 1 or seed != "random":
        return
    yield Fault(
        message=f"LMCache over {ranks} ranks without PYTHONHASHSEED: each hashes differently, and "
        "none finds what another stored",
        location=subject.place("kv_transfer_config", "kv_offloading_backend"),
        fix="PYTHONHASHSEED=0 before the command",
        evidence=(("ranks", ranks),),
    )
