# Each word is reported where it stands, also inside of an array.
# gpu: h100-sxm x 1
args=(
  --max-model-len 8192
  --num-scheduler-steps 10  # expect: FLG001
  --enable-metrics          # expect: FLG001
)
vllm serve Qwen/Qwen3-8B "${args[@]}"
