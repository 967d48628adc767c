export VLLM_PORT=tcp://10.43.0.12:80  # expect: ENV003
vllm serve Qwen/Qwen3-8B
