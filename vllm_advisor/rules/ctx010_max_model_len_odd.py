"""--max-model-len is a number that looks like a slip of the pen.

## What it checks
Whether `--max-model-len` is within 2 % of a power of two from 2,048 on, without being one, a round
number or one off: 8096 for 8192, 16348 for 16384, 131027 for 131072.

## Why it matters
Little is lost. But clients and routers that were told 8,192 have some of their requests refused.

## Bad
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 16348
```

## Good
```bash
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 16384
```

## Fix
Write the power of two, or the round number.

## References
- vllm:0.33.0:vllm/config/model.py#max_model_len
- https://github.com/modal-labs/modal-examples/issues/843
"""

from __future__ import annotations

from collections.abc import Iterator

from vllm_advisor.rules.hf_overrides import asked_length
from vllm_advisor.rules.protocol import Fault, Subject, rule
from vllm_advisor.types.finding import Severity

_POWERS = tuple(1 << n for n in range(11, 24))
_NEAR = 0.02
_ROUND = (100, 128)  # multiples that people choose; 8192 - 96 is none


@rule(
    id="CTX010",
    name="max-model-len-odd",
    severity=Severity.INFO,
    flags=("max_model_len",),
)
def check(subject: Subject) -> Iterator[Fault]:
    """Compare with the nearest power of two."""
    asked = asked_length(subject)
    if asked is None or any(asked % grain == 0 for grain in _ROUND):
        return
    power = min(_POWERS, key=lambda p: abs(p - asked))
    if not 1 < abs(power - asked) <= _NEAR * power:
        return
    yield Fault(
        message=f"--max-model-len {asked} is {abs(power - asked)} "
        f"{'below' if asked < power else 'above'} {power}",
        location=subject.place("max_model_len"),
        fix=f"--max-model-len {power}, if that is what was meant",
        evidence=(("max_model_len", asked), ("power_of_two", power)),
    )
