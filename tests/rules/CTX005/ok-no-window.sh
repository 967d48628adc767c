vllm serve Qwen/Qwen3-8B --disable-sliding-window --max-model-len 32768
