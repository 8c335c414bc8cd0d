"""Debian's PostgreSQL in the node's network, which lets nobody in without TLS and a password.

Trade-off: version 15, the oldest that the product takes, since the package with 18 that serves `partita dev` is built
without TLS. The test's own questions go through a socket, past the network.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.contract import run
from e2e.cluster.errors import ClusterError
from e2e.cluster.pki import Authority
from e2e.cluster.processes import Running
from e2e.cluster.waiting import wait_until
from e2e.outside.network import ADDRESS, Network, give
from partita.store.programs import as_account

VERSION = 15
PROGRAMS = Path(f"/usr/lib/postgresql/{VERSION}/bin")
PORT = 5432
SECONDS = 60
ACCESS = "local all all trust\nhostssl all all all scram-sha-256\n"
CONFIG = {
    "listen_addresses": ADDRESS,
    "port": str(PORT),
    "ssl": "on",
    "fsync": "off",
    "shared_buffers": "128MB",
    "max_connections": "100",
}


def problem() -> str | None:
    """Return why it cannot run here, or None when it can."""
    if (PROGRAMS / "postgres").exists():
        return None
    return f"PostgreSQL {VERSION} is not installed; try: apt-get install postgresql-{VERSION}"


@dataclass(slots=True)
class Postgres:
    """One server; `authority` issued its certificate."""

    network: Network
    authority: Authority
    program: Running | None = None

    @property
    def data(self) -> Path:
        """Its data directory, which also holds its socket."""
        return self.network.folder / "postgres"

    def start(self) -> None:
        """Make the data directory and start the server; returns when it answers."""
        self.data.mkdir()
        give(self.data)
        initdb = (str(PROGRAMS / "initdb"), "-D", str(self.data), "-U", "postgres", "-A", "trust")
        fixed = ("-E", "UTF8", "--locale=C", "--no-sync")
        subprocess.run([*initdb, *fixed], check=True, capture_output=True, cwd="/", timeout=SECONDS, **as_account())
        (self.data / "pg_hba.conf").write_text(ACCESS, encoding="utf-8")
        self.network.give_certificate(self.authority, self.data)
        options = {**CONFIG, "unix_socket_directories": str(self.data)}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self.program = self.network.start("postgresql", str(PROGRAMS / "postgres"), "-D", str(self.data), *words)
        wait_until(self._answers, "PostgreSQL answers", seconds=SECONDS, log=self.program.log)

    def stop(self) -> None:
        """Stop the server in good order, with its shared memory."""
        if self.program is not None and self.program.alive():
            os.kill(self.program.pid, signal.SIGINT)
            program = self.program
            wait_until(lambda: not program.alive(), "PostgreSQL has stopped", seconds=SECONDS, log=program.log)

    def sql(self, database: str, query: str) -> list[list[str]]:
        """Run statements as the superuser; returns the rows of the last one as texts."""
        flags = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "-At", "-F", "\t", "-c", query)
        command = (_psql(), "-h", str(self.data), "-p", str(PORT), "-U", "postgres", "-d", database, *flags)
        return [line.split("\t") for line in run(command, seconds=SECONDS).splitlines()]

    def _answers(self) -> bool:
        if self.program is not None:
            self.program.check()
        try:
            return self.sql("postgres", "SELECT 1") == [["1"]]
        except ClusterError:
            return False


def _psql() -> str:
    return shutil.which("psql") or str(PROGRAMS / "psql")
