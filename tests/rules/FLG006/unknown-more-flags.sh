vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice $MORE
