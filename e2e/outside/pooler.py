"""Debian's PgBouncer in the node's network: transaction mode, TLS and passwords on both sides."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.contract import run
from e2e.cluster.errors import ClusterError
from e2e.cluster.processes import Running
from e2e.cluster.waiting import wait_until
from e2e.outside import postgres
from e2e.outside.network import ADDRESS, give
from e2e.outside.postgres import Postgres

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PORT = 6432
ADMIN = "console"
SECONDS = 30


def problem() -> str | None:
    """Return why it cannot run here, or None when it can."""
    return None if PROGRAM else "PgBouncer is not installed; try: apt-get install pgbouncer"


@dataclass(slots=True)
class Pooler:
    """One process before a server; `users` are those that it lets in, with their passwords at the server."""

    server: Postgres
    users: dict[str, str]
    program: Running | None = None
    password: str = field(default_factory=lambda: secrets.token_hex(8))
    """Of its console."""

    @property
    def folder(self) -> Path:
        """Where its files and its socket are."""
        return self.server.network.folder / "pgbouncer"

    def start(self) -> None:
        """Start it; returns when its console answers."""
        self.folder.mkdir()
        self.server.network.give_certificate(self.server.authority, self.folder)
        (self.folder / "ca.crt").write_bytes(self.server.authority.ca.certificate.read_bytes())
        known = {**self.users, ADMIN: self.password}
        (self.folder / "users").write_text("".join(f'"{name}" "{word}"\n' for name, word in known.items()), "utf-8")
        (self.folder / "pgbouncer.ini").write_text(self._config(), "utf-8")
        for path in (self.folder, *self.folder.iterdir()):
            give(path)
        self.program = self.server.network.start("pgbouncer", str(PROGRAM), str(self.folder / "pgbouncer.ini"))
        wait_until(self._answers, "PgBouncer answers", seconds=SECONDS, log=self.program.log)

    def stop(self) -> None:
        """End it."""
        if self.program is not None:
            self.program.kill()

    def transactions(self, database: str) -> int:
        """Transactions that have passed through it to a database."""
        heading, *rows = [line.split("\t") for line in self._ask("SHOW STATS").splitlines()]
        for row in rows:
            told = dict(zip(heading, row, strict=True))
            if told["database"] == database:
                return int(told["total_xact_count"])
        return 0

    def _config(self) -> str:
        values = {
            "listen_addr": ADDRESS,
            "listen_port": str(PORT),
            "unix_socket_dir": str(self.folder),
            "auth_type": "scram-sha-256",
            "auth_file": str(self.folder / "users"),
            "admin_users": ADMIN,
            "pool_mode": "transaction",
            "default_pool_size": "8",
            "client_tls_sslmode": "require",
            "client_tls_cert_file": str(self.folder / "server.crt"),
            "client_tls_key_file": str(self.folder / "server.key"),
            "server_tls_sslmode": "verify-ca",
            "server_tls_ca_file": str(self.folder / "ca.crt"),
        }
        lines = "".join(f"{name} = {value}\n" for name, value in values.items())
        return f"[databases]\n* = host={ADDRESS} port={postgres.PORT}\n[pgbouncer]\n{lines}"

    def _ask(self, command: str) -> str:
        address = ("-h", str(self.folder), "-p", str(PORT), "-U", ADMIN, "-d", "pgbouncer")
        psql = ("psql", "-X", *address, "-A", "-F", "\t", "-P", "footer=off", "-c", command)
        return run(psql, seconds=SECONDS, environment={"PGPASSWORD": self.password})

    def _answers(self) -> bool:
        if self.program is not None:
            self.program.check()
        try:
            return bool(self._ask("SHOW VERSION"))
        except ClusterError:
            return False
