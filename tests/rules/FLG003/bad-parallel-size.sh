# Said once: PAR001 leaves sizes below 1 to this rule.
vllm serve Qwen/Qwen3-8B --tensor-parallel-size 0  # expect: FLG003
