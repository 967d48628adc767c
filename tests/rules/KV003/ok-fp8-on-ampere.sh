# FlashInfer takes it.
# gpu: a100-sxm4-80 x 1
vllm serve meta-llama/Llama-3.1-8B-Instruct --kv-cache-dtype fp8
