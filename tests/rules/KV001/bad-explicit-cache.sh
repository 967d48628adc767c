# 16 GiB for one request of 131,072 tokens (128 KiB a token) into a cache of 8 GiB.
# gpu: h100-sxm x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-memory-bytes 8G  # expect: KV001
