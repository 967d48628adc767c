vllm serve Qwen/Qwen3-8B --enable-per-request-metrics --disable-log-stats  # expect: FLG006
