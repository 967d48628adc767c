# 200 x 5 tokens x 14e9 operations over 989e12 are 14 ms; weights and cache are read in 11.
# gpu: h100-sxm x 1
# class: {name: chat, prompt_tokens: 500, output_tokens: 300, concurrent_requests: 200}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 --max-num-seqs 256 \
  --speculative-config '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'  # expect: SPD001
