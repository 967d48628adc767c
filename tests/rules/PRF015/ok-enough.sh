# gpu: l40s x 4
vllm serve deepseek-ai/DeepSeek-V2-Lite --tensor-parallel-size 4 --max-model-len 32768
