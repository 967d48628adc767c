vllm serve Qwen/Qwen3-8B --enforce-eager --max-cudagraph-capture-size 64  # expect: PRF005, PRF013
