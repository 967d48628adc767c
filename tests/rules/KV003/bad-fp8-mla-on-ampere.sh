# gpu: a100-sxm4-80 x 1
vllm serve deepseek-ai/DeepSeek-V2-Lite --kv-cache-dtype fp8  # expect: KV003
