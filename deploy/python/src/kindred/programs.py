"""The programs: runs as functions.

The programs are looked for in the folder `KINDRED_PROGRAMS`, or else on the path. No shell is started, and
patients go to a program in files that only their owner may read, which are removed afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from .run import Run

COORDINATOR, SITE_AGENT = "kindred-coordinator", "kindred-site-agent"
_ROUND = re.compile(r"round (\d+) of at most (\d+)")
# A round limit that no run comes near shows no progress.
_LIMIT_MAX = 100_000


class KindredError(Exception):
    """A program that failed: its own text, and its exit code of `deploy/codes.md`."""

    def __init__(self, text: str, code: int) -> None:
        """Take what the program wrote, and its code."""
        super().__init__(f"{text} (code {code})")
        self.text = text
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """Let other processes have it."""
        return type(self), (self.text, self.code)


def _program(name: str) -> str:
    path = shutil.which(name, path=os.environ.get("KINDRED_PROGRAMS"))
    if path is None:
        raise FileNotFoundError(f"found no program {name}; name its folder by KINDRED_PROGRAMS")
    return path


class _Bar:
    """One line on standard error that shows how far a run is."""

    WIDTH = 20

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.longest = 0

    def show(self, line: str) -> None:
        if self.shown:
            rounds = _ROUND.search(line)
            done, limit = map(int, rounds.groups()) if rounds else (0, 1)
            share = 1.0 if line.startswith("ended") else done / limit if limit < _LIMIT_MAX else 0.0
            text = f"[{'#' * round(share * self.WIDTH):<{self.WIDTH}}] {line}"
            self.longest = max(self.longest, len(text))
            sys.stderr.write(f"\r{text:<{self.longest}}")
            sys.stderr.flush()

    def finish(self) -> None:
        if self.longest:
            sys.stderr.write("\n")


def run_program(name: str, arguments: list[str], progress: bool = False) -> str:
    """Run a program to its end; gives what it printed."""
    bar = _Bar(progress)
    said: list[str] = []
    with (
        tempfile.TemporaryFile() as printed,
        subprocess.Popen(
            [_program(name), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        try:
            for line in process.stderr or []:
                said.append(line)
                bar.show(line.strip())
        except BaseException:
            process.send_signal(signal.SIGINT)
            raise
        finally:
            process.wait()
            bar.finish()
        printed.seek(0)
        output = printed.read().decode()
    if process.returncode:
        whole = "".join(said)
        raise KindredError(
            whole[max(whole.find("error: "), 0) :].removeprefix("error: ").strip(), process.returncode
        )
    return output


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a folder that only its owner may read, and that is removed with all in it."""
    with tempfile.TemporaryDirectory(prefix="kindred-") as folder:
        yield Path(folder)


def write_private(path: Path, content: str | pd.DataFrame) -> str:
    """Write a file that only its owner may read; gives its path."""
    text = content if isinstance(content, str) else content.to_csv(index=False, date_format="%Y-%m-%d")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return str(path)


def _job(job: str | Path, folder: Path) -> str:
    return str(job) if isinstance(job, Path) else write_private(folder / "job.toml", job)


def options(**values: Any) -> list[str]:
    """Give command-line options, without those that are None or False."""
    given = []
    for name, value in values.items():
        if value is not None and value is not False:
            given.append(f"-{name}" if len(name) == 1 else f"--{name}")
            given.extend([] if value is True else [str(value)])
    return given


def synthesise(
    out: str | Path, outcome: str = "class", sites: str | None = None, seed: int | None = None
) -> dict[str, pd.DataFrame]:
    """Write synthetic patients of several sites, one file each; gives them by site."""
    given = options(outcome=outcome, sites=sites, seed=seed, out=out)
    run_program(SITE_AGENT, ["synthesise", *given])
    return {path.stem: pd.read_csv(path, dtype={"patient": str}) for path in sorted(Path(out).glob("*.csv"))}


def simulate(
    out: str | Path,
    job: str | Path | None = None,
    data: Mapping[str, pd.DataFrame] | Path | None = None,
    *,
    policy: str | Path | None = None,
    patient: str | None = None,
    seed: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Run:
    """Run a federation on this machine: a job, as text or a file, on a frame per site or a folder of files.

    Without a job it is one on synthetic patients of four sites.
    """
    with private_folder() as folder:
        source = data
        if isinstance(data, Mapping):
            source = folder / "data"
            source.mkdir(mode=0o700)
            for site, frame in data.items():
                write_private(source / f"{site}.csv", frame)
        jobs = [] if job is None else [_job(job, folder)]
        given = options(data=source, out=out, policy=policy, id=patient, seed=seed, force=force)
        run_program(COORDINATOR, ["simulate", *jobs, *given], progress)
    return Run(Path(out))


def local(
    frame: pd.DataFrame,
    job: str | Path,
    out: str | Path,
    *,
    patient: str | None = None,
    seed: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Run:
    """Run a job on one table alone; nothing leaves. `patient` is the column of the identifiers."""
    with private_folder() as folder:
        data = write_private(folder / "patients.csv", frame)
        given = options(data=data, out=out, id=patient, seed=seed, force=force)
        run_program(SITE_AGENT, ["local", _job(job, folder), *given], progress)
    return Run(Path(out))


def submit(
    job: str | Path,
    config: str | Path,
    out: str | Path,
    *,
    wait: bool = True,
    seed: int | None = None,
    token: str | None = None,
    force: bool = False,
    progress: bool = True,
) -> Run | str:
    """Submit a job by an operator's configuration. It waits for the results, or gives the run's id.

    The job is a file, or text that names its study by an absolute path.
    """
    with private_folder() as folder:
        given = options(config=config, seed=seed, token=token, wait=wait)
        if wait:
            given += options(out=out, force=force)
        printed = run_program(COORDINATOR, ["job", "submit", _job(job, folder), *given], progress and wait)
    return Run(Path(out)) if wait else printed.strip()
