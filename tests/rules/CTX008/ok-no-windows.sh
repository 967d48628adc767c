# gpu: h100-sxm x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --disable-hybrid-kv-cache-manager
