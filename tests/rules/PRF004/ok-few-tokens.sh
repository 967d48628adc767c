# gpu: l4 x 1
# class: {name: voice, prompt_tokens: 300, output_tokens: 200, concurrent_requests: 2, slo: {itl_ms: 100}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 8 --max-num-batched-tokens 4096
