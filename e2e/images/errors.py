"""What can go wrong while an image is made, in the words a person reads."""


class ImageError(Exception):
    """An image could not be built; the message carries the place in the Dockerfile and the end of the output."""
