#!/usr/bin/env bash
# Writes requirements/*.txt: every dependency of pyproject.toml with version and hashes, without index addresses.
# usage: scripts/lock.sh [--upgrade]      pins stay as they are where pyproject.toml still allows them, unless upgraded
set -euo pipefail
cd "$(dirname "$0")/.."

UV=${UV:-uv}
if ! command -v "$UV" >/dev/null; then
  echo "lock: uv is not installed; try: pip install uv, or name it by UV=/path/to/uv" >&2
  exit 2
fi

compile() {
  "$UV" pip compile --no-config --quiet --universal --python-version 3.11 --generate-hashes \
    --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$@"
}

compile pyproject.toml --output-file requirements/runtime.txt "$@"
compile pyproject.toml requirements/build.in --extra embedded --group dev \
  --constraint requirements/runtime.txt --output-file requirements/dev.txt "$@"
compile requirements/build.in --constraint requirements/dev.txt --output-file requirements/build.txt "$@"
compile --group bench --constraint requirements/dev.txt --output-file requirements/bench.txt "$@"
wc -l requirements/*.txt
