vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --max-num-batched-tokens 256  # expect: PRF011
