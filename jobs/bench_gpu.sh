# Fills tables 7 and 8 on a CUDA machine: `bash jobs/bench_gpu.sh` in a checkout, with Python 3.11 or 3.12 as $PYTHON.
#
# Sets up .venv-gpu with vLLM's CUDA build, then measures the published size with random bf16 weights and nano, each
# without and with CUDA graphs, k = 0..3, 1, 8, 32 and 64 pages at once, output lengths fixed; and holds both engines
# against each other on that GPU. Results: jobs/results/*_<GPU>.json, to be committed. An L4 needs about an hour;
# QUICK=1 takes shorter pages and fewer of them, for ten minutes on a large GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv="${VENV:-.venv-gpu}"
if [ ! -e "$venv/.ready" ]; then
  "${PYTHON:-python3}" -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check -e '.[vllm]' pytest
  touch "$venv/.ready"
fi
python="$venv/bin/python"
gpu="$("$python" -c '
import re, torch
assert torch.cuda.is_available(), "no CUDA device here: make vllm-cpu and make test-engine are for machines without one"
print(re.sub(r"[^a-z0-9]+", "_", torch.cuda.get_device_name().lower()).strip("_"))')"
export VLLM_NO_USAGE_STATS=1 VLLM_LOGGING_LEVEL="${VLLM_LOGGING_LEVEL:-WARNING}"
if [ -n "${QUICK:-}" ]; then
  size=(--tokens 64 --depths 0,1,3 --at-once 1,8,32,64)
else
  size=(--tokens 256 --depths 0,1,2,3 --at-once 1,8,32,64)
fi

"$python" -m jocr.evaluation.bench_vllm --published-size "${size[@]}" --json "jobs/results/decode_vllm_published_$gpu.json"
"$python" -m jocr.evaluation.bench_vllm nano "${size[@]}" --json "jobs/results/decode_vllm_nano_$gpu.json"
for dtype in float32 bfloat16; do
  "$python" -m jocr.evaluation.engines nano --dtype "$dtype" --json "jobs/results/engines_${dtype}_$gpu.json"
done
ls -l jobs/results/*"$gpu"*
