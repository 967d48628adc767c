# gpu: t4 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-dtype fp8  # expect: KV003
