vllm serve some/unknown-model --max-model-len "$LENGTH"
