# gpu: h100-sxm x 1
# vllm: 0.8.3
VLLM_USE_V1=1 vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --kv-cache-dtype fp8
