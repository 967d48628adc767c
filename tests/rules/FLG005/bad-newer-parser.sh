# vllm: 0.32.0
vllm serve org/not-known --enable-auto-tool-choice --tool-call-parser beam  # expect: FLG005
