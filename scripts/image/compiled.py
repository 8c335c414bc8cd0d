"""Compiles every module of a folder: `python -m image.compiled FOLDER [ROOT]`, named as when ROOT is the root."""

import sys
from pathlib import Path

from .python import compile_below

if __name__ == "__main__":
    compile_below(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "/"))
