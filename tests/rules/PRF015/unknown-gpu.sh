vllm serve deepseek-ai/DeepSeek-V2-Lite --tensor-parallel-size 4 --max-model-len 32768
