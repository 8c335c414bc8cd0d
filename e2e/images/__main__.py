"""`python -m e2e.images build [NAME…] --output DIR`: prints the path of every archive.

Exit codes: 0 ok · 1 a build failed · 2 usage · 5 nothing can be built here.
"""

import argparse
import sys
from pathlib import Path

from e2e.cluster.progress import to_stderr
from e2e.images import IMAGES, ImageError, build, problem

EXIT_FAILED, EXIT_UNAVAILABLE = 1, 5


def main(arguments: list[str] | None = None) -> int:
    """Build what the arguments name and return the exit code."""
    options = _parser().parse_args(arguments)
    if (missing := problem()) is not None:
        print(f"images: {missing}", file=sys.stderr)
        return EXIT_UNAVAILABLE
    for name in options.names or IMAGES:
        try:
            print(build(name, options.output, say=to_stderr).tar, flush=True)
        except ImageError as error:
            print(f"image {name}: {error}", file=sys.stderr)
            return EXIT_FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.images", description="Images for tests, made without Docker.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    child = commands.add_parser("build", help="build images into the user's cache and write their archives")
    child.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(IMAGES)} (default: all)")
    child.add_argument("--output", type=Path, required=True, help="folder for the archives")
    return parser


if __name__ == "__main__":
    sys.exit(main())
