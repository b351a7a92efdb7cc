"""A PostgreSQL server of the tests' own: on loopback, as an unprivileged user, in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def program(name: str) -> str:
    """A program of the server, which Debian does not put on the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)]))
    if found is None:
        pytest.fail(f"{name} of a PostgreSQL server is missing: apt-get install postgresql (.ci/run does it on Debian)")
    return os.path.realpath(found)


class Server:
    """Starts, stops and crashes; ``url`` is that of its database."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as probe:
            self.port = probe.getsockname()[1]
        self.user: dict[str, Any] = {}
        if os.geteuid() == 0:  # initdb refuses to run as root
            name = "postgres" if any(user.pw_name == "postgres" for user in pwd.getpwall()) else "nobody"
            shutil.chown(folder, name)
            self.user = {"user": name, "group": pwd.getpwnam(name).pw_gid, "extra_groups": []}
        command = [program("initdb"), "-D", str(self.data), "-U", "cocopt", "--auth=trust", "-E", "UTF8", "-N"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **self.user)
        if done.returncode:
            pytest.fail(f"initdb: {done.stdout}{done.stderr}")

    def start(self) -> None:
        import psycopg

        command = [program("postgres"), "-D", str(self.data), "-p", str(self.port), "-k", str(self.folder)]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*command, "-c", "listen_addresses=127.0.0.1"], cwd=self.folder, stdout=log, stderr=log, **self.user
            )
        for _ in range(600):
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.1)
        pytest.fail(f"the PostgreSQL server does not start: {(self.folder / 'log').read_text()}")

    def crash(self) -> None:
        """Ends all of its processes at once, without a checkpoint: the next start recovers from the log."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def url(self) -> str:
        return f"postgresql://cocopt@127.0.0.1:{self.port}/postgres"


@contextlib.contextmanager
def postgres() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="cocopt-server-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
