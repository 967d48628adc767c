vllm serve some/unknown-model --speculative-config '{"method": "dflash", "model": "some/draft", "num_speculative_tokens": 15}'
