"""Asking an API server whether it is ready, without starting a program for each question."""

import contextlib
import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.pki import Pair
from e2e.cluster.ports import LOOPBACK

ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Probe:
    """An HTTPS client with the administrator's certificate."""

    port: int
    ca: Path
    client: Pair

    def ready(self) -> bool:
        """Return whether every check of `/readyz` passes."""
        return self.found("/readyz")

    def found(self, path: str) -> bool:
        """Return whether a GET answers 200; False also when nothing answers."""
        try:
            with contextlib.closing(self._connection()) as connection:
                connection.request("GET", path)
                return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def _connection(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(str(self.client.certificate), str(self.client.key))
        return http.client.HTTPSConnection(LOOPBACK, self.port, timeout=ANSWER_SECONDS, context=context)
