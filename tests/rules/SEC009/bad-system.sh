vllm serve Qwen/Qwen3-VL-8B-Instruct --allowed-local-media-path /  # expect: SEC009

vllm serve Qwen/Qwen3-VL-8B-Instruct --allowed-local-media-path /etc/  # expect: SEC009
