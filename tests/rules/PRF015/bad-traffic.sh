# gpu: l40s x 4
# class: {name: chat, prompt_tokens: 12000, output_tokens: 500, concurrent_requests: 40, slo: {itl_ms: 500}}
vllm serve deepseek-ai/DeepSeek-V2-Lite --max-model-len 16384 --max-num-seqs 64 --kv-cache-memory-bytes 6G --tensor-parallel-size 4  # expect: PRF001, PRF015
