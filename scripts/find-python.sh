#!/usr/bin/env bash
# Prints the first Python of 3.11 or newer that can make virtual environments; PYTHON names one to take instead.
set -euo pipefail

fits() {
  "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
  if fits "$candidate"; then
    command -v "$candidate"
    exit 0
  fi
done
echo "set-up: no Python 3.11 or newer with the module venv found (looked at: ${PYTHON:-python3, python3.11 to 3.14})" >&2
echo "try: install python3.11 and python3.11-venv, or name one by PYTHON=/path/to/python3" >&2
exit 5
