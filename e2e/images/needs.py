"""What building an image needs of the machine."""

import os
import platform
import shutil
import sys

PROGRAMS = ("debootstrap", "unshare", "chroot", "mount", "cp")


def problem() -> str | None:
    """Return why no image can be built here, or None when it can."""
    if platform.system() != "Linux":
        return "images are built on Linux only; try: docker build"
    if os.geteuid() != 0:
        return "building an image without Docker needs root (debootstrap, overlay mounts); try: sudo, or docker build"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"missing programs: {', '.join(missing)}; try: apt-get install debootstrap util-linux"
    if sys.version_info[:2] != (3, 11):
        return f"Python 3.11 is needed, as in the image, and this is {sys.version_info[0]}.{sys.version_info[1]}"
    return None
