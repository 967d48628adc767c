vllm serve Qwen/Qwen3-8B --enable-log-outputs  # expect: FLG006
