# The length is not judged: it is not known.
vllm serve Qwen/Qwen3-8B --max-model-len 8k5  # expect: FLG002
