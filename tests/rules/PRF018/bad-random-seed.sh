PYTHONHASHSEED=random vllm serve some/unknown-model --tensor-parallel-size 2 --kv-offloading-size 20 \
  --kv-offloading-backend lmcache  # expect: PRF018
