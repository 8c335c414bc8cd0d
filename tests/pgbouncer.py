"""PgBouncer in transaction mode, as a process of the tests.

Invariant: it listens on loopback only, runs under an unprivileged account (it refuses root), keeps everything in a
folder of its own, and knows every database of its server by a wildcard. Trade-off: it trusts whoever reaches its port;
the names that it lets in are those of ``users``. The package's own service is never touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import asyncpg

from partita.store.programs import account, as_account
from tests import postgres
from tests.waiting import until_sync

CHOSEN = "PARTITA_TEST_PGBOUNCER"
"""The environment's variable with which tests pass through it."""
PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "pgbouncer"
ADMIN = "pgbouncer_admin"
CONFIG = {
    "listen_addr": "127.0.0.1",
    "unix_socket_dir": "",
    "auth_type": "trust",
    "pool_mode": "transaction",
    "max_client_conn": "500",
    "default_pool_size": "12",
    "max_db_connections": "24",
    "server_idle_timeout": "5",
    "server_login_retry": "0.2",
    "query_wait_timeout": "60",
    "admin_users": ADMIN,
    "log_connections": "0",
    "log_disconnections": "0",
}


def chosen() -> bool:
    """Whether tests are to pass through it."""
    return bool(os.environ.get(CHOSEN))


@dataclass
class PgBouncer:
    """One process in front of one server."""

    server_url: str
    folder: Path
    users: dict[str, str] = field(default_factory=dict)
    """Further users and their passwords at the server."""
    options: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def url(self, database: str, user: str = "") -> str:
        """URL of a database through it."""
        return f"postgresql://{quote(user or self._owner)}@127.0.0.1:{self.port}/{quote(database)}?sslmode=disable"

    def start(self) -> None:
        """Start it, on the port of before if it had one; returns when it lets clients in."""
        self.port = self.port or _free_port()
        self._write_users()
        _write(self.folder / "pgbouncer.ini", self._config())
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, str(self.folder / "pgbouncer.ini")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                **as_account(),
            )
        until_sync(self._answers, what=f"PgBouncer answers on port {self.port}; {self.log()}")

    def let_in(self, user: str, password: str = "") -> None:
        """Let one more user in."""
        self.users[user] = password
        self._write_users()
        postgres.run(self._command("RELOAD"))

    def kill(self) -> None:
        """End it as a crash does: every connection of both sides is lost."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def log(self) -> str:
        """The end of its log."""
        return (self.folder / "log").read_text(errors="replace")[-2_000:]

    def _write_users(self) -> None:
        secret = unquote(urlsplit(self.server_url).password or "")
        users = {self._owner: secret, ADMIN: "", **self.users}
        _write(self.folder / "users.txt", "".join(f'"{name}" "{word}"\n' for name, word in users.items()))

    async def _command(self, text: str) -> None:
        """One command of its console, which knows simple queries only."""
        console = await asyncpg.connect(self.url("pgbouncer", ADMIN))
        try:
            await console.execute(text)
        finally:
            await console.close()

    @property
    def _owner(self) -> str:
        return unquote(urlsplit(self.server_url).username or "postgres")

    def _config(self) -> str:
        values = {**CONFIG, **self.options, "listen_port": str(self.port), "auth_file": str(self.folder / "users.txt")}
        lines = "".join(f"{name} = {value}\n" for name, value in values.items())
        return f"[databases]\n* = {_target(self.server_url)}\n[pgbouncer]\n{lines}"

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _target(url: str) -> str:
    """Host and port of a server, as PgBouncer names them."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    host = query.get("host", [parts.hostname or "127.0.0.1"])[0]
    return f"host={host} port={query.get('port', [str(parts.port or 5432)])[0]}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    if (owner := account()) is not None:
        os.chown(path, owner.pw_uid, owner.pw_gid)


@contextmanager
def before(server_url: str, **options: str) -> Iterator[PgBouncer]:
    """A process in front of this server, ended afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="partita-pgbouncer-"))
    folder.chmod(0o755)
    bouncer = PgBouncer(server_url, folder, options=options)
    try:
        bouncer.start()
        yield bouncer
    finally:
        bouncer.kill()
        shutil.rmtree(folder)
