# 72B AWQ on 48 GB: 15,360 tokens fit so (vllm-project/vllm#10102).
vllm serve Qwen/Qwen2.5-72B-Instruct-AWQ --gpu-memory-utilization 0.98 --kv-cache-dtype fp8_e5m2 --max-model-len 15360 --enforce-eager
