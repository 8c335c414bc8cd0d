"""Images from their Dockerfiles on a machine where no Docker runs.

`build(name, output)` executes the same Dockerfile that `docker build` reads: stage by stage in a private root without a
network, every step kept in the user's cache under the hash of all that goes into it, and the last stage written as an
archive that `ctr images import` and `docker load` read.
"""

from e2e.images.build import IMAGES, Image, build
from e2e.images.errors import ImageError
from e2e.images.needs import problem

__all__ = ["IMAGES", "Image", "ImageError", "build", "problem"]
