vllm serve Qwen/Qwen3-VL-8B-Instruct --allowed-local-media-path /srv/media
