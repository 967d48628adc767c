# gpu: a100-sxm4-80 x 1
# vllm: 0.8.3
# V0 would take it; V1 by name refuses.
VLLM_USE_V1=1 vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --kv-cache-dtype fp8  # expect: KV003
