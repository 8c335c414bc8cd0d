"""The certificates of a throwaway control plane: one CA, what it issues, one key that signs service-account tokens.

Made by the `openssl` program in the oldest form of its commands, so that LibreSSL takes them too. The keys guard a
server that listens on loopback and lives for minutes; they are readable by their owner alone all the same.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.ports import LOOPBACK

DAYS = 365
_CA = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign,digitalSignature\n"
_LEAF = "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage={usage}\n"
_SERVICE = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:{ip}"
_NAMES = f"IP:{LOOPBACK},IP:{{address}},DNS:localhost,{_SERVICE}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A folder with a CA that issues certificates into it."""

    folder: Path

    @property
    def ca(self) -> Pair:
        """The CA itself."""
        return self.pair("ca")

    @property
    def token_key(self) -> Path:
        """The private key that signs service-account tokens."""
        return self.folder / "service-accounts.key"

    def pair(self, name: str) -> Pair:
        """Name the files of an issued certificate."""
        return Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")

    def create(self, *, service_ip: str, address: str = LOOPBACK) -> None:
        """Make the CA, the API server's certificate, its usual clients' certificates and the token key.

        `address` is where the API server is reached besides loopback.
        """
        self.create_ca()
        _key(self.token_key)
        self.issue_server("apiserver", "/CN=kube-apiserver", _NAMES.format(ip=service_ip, address=address))
        self.issue_client("admin", "/O=system:masters/CN=admin")
        self.issue_client("controller-manager", "/CN=system:kube-controller-manager")

    def create_ca(self) -> None:
        """Make the folder, and the CA alone."""
        self.folder.mkdir(mode=0o700, parents=True)
        _key(self.ca.key)
        self._sign("ca", "/CN=partita-e2e-ca", _CA, ["-signkey", str(self.ca.key)])

    def issue_client(self, name: str, subject: str) -> None:
        """Issue a certificate for a client; `subject` in the form of openssl, such as `/O=group/CN=user`."""
        self._issue(name, subject, _LEAF.format(usage="clientAuth"))

    def issue_server(self, name: str, subject: str, names: str) -> None:
        """Issue a certificate for a server; `names` is the text of its subjectAltName, such as `IP:127.0.0.1`."""
        self._issue(name, subject, f"{_LEAF.format(usage='serverAuth')}subjectAltName={names}\n")

    def _issue(self, name: str, subject: str, extensions: str) -> None:
        _key(self.pair(name).key)
        signer = ["-CA", str(self.ca.certificate), "-CAkey", str(self.ca.key), "-CAcreateserial"]
        self._sign(name, subject, extensions, signer)

    def _sign(self, name: str, subject: str, extensions: str, signer: list[str]) -> None:
        pair, request, extension_file = self.pair(name), self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extension_file.write_text(extensions, encoding="utf-8")
        _openssl("req", "-new", "-sha256", "-key", str(pair.key), "-subj", subject, "-out", str(request))
        files = ["-in", str(request), "-extfile", str(extension_file), "-out", str(pair.certificate)]
        _openssl("x509", "-req", "-sha256", "-days", str(DAYS), *signer, *files)


def openssl_problem() -> str | None:
    """Return why certificates cannot be made here, or None when they can."""
    return None if shutil.which("openssl") else "the openssl program is not installed"


def _key(path: Path) -> None:
    path.touch(mode=0o600)
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))


def _openssl(*arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode != 0:
        raise ClusterError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
