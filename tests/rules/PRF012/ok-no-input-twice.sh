vllm serve Qwen/Qwen3-VL-8B-Instruct --no-enable-prefix-caching --mm-processor-cache-gb 0
