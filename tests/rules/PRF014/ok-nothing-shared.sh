# gpu: h100-sxm x 4
# class: {name: chat, prompt_tokens: 2000, output_tokens: 200, concurrent_requests: 8}
vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct --tensor-parallel-size 4 --max-model-len 32768 --max-num-seqs 64
