# gpu: l40s x 4
# class: {name: voice, prompt_tokens: 2000, output_tokens: 500, concurrent_requests: 8, slo: {itl_ms: 1000}}
vllm serve Qwen/Qwen3-8B --max-model-len 8192 --max-num-seqs 16 --tensor-parallel-size 4
