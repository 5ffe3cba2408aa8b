"""One table: seconds of Kindred and of its peers on this machine, in one run.

    make bench

It needs the peers of requirements.txt. Two programs run in turns, and the fastest turn counts. The table goes to
ratios.md in the folder that is named, and ratios.csv has the same numbers.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TURNS = 2


@dataclass
class Row:
    """One line of the table: the numbers that a pattern finds are added, and multiplied by the unit."""

    what: str
    ours: str
    peers: str
    unit: float = 1.0


@dataclass
class Pair:
    """Two programs on the same work; without a peer's command both numbers are in the output of ours."""

    peer: str
    rows: list[Row]
    ours: list[str]
    theirs: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)


def bench(package: str, name: str, *arguments: str) -> list[str]:
    cargo = os.environ.get("CARGO", "cargo")
    return [cargo, "bench", "--locked", "--quiet", "--package", package, "--bench", name, "--", *arguments]


def pairs(folder: Path, programs: Path) -> list[Pair]:
    python, peers = sys.executable, "shared/similarity/benches"
    number = r"([\d.]+)"
    return [
        Pair(
            "numpy",
            [
                Row("UnPSL: one pass over all pairs, 735 x 15", f"735 x 15, InnerProduct, 2 threads: {number}", f"735 x 15, InnerProduct +{number}", 1e-3),
                Row("UnPSL: one pass over all pairs, 2,000 x 200", f"2000 x 200, InnerProduct, 2 threads: {number}", f"2000 x 200, InnerProduct +{number}", 1e-3),
            ],
            bench("similarity", "pass"),
            [python, f"{peers}/pass.py"],
        ),
        Pair(
            "scikit-learn",
            [Row("500 trees, 10,000 x 50", f"train 10000x50 node 5 +{number}", f"train 10000x50 split 6: {number}")],
            bench("similarity", "forest", str(folder), "train"),
            [python, f"{peers}/peers/forest.py", str(folder), "2", "10000x50"],
        ),
        Pair(
            "fgclustering",
            [Row("proximities of 10,000 patients, 500 trees", f"proximity n=10000 T=500 +{number}", f"compiled: {number}")],
            bench("similarity", "forest", str(folder), "proximity"),
            [python, f"{peers}/peers/proximity.py", str(folder)],
        ),
        Pair(
            "faiss-cpu",
            [Row("5 nearest of 1,000,000 x 64, 1,000 queries", f"1000 queries of 1000000 x 64, euclidean: {number}", f"1000 queries, FAISS IndexFlatL2: {number}")],
            bench("similarity", "neighbours", "euclidean"),
            [python, f"{peers}/neighbours.py", "faiss"],
        ),
        Pair(
            "flwr",
            [Row("masks of 1,000,000 numbers, 3 sites", rf"^ +3 +1000000 +{number} +{number}", rf"^ +3 +1000000 +{number} +{number}", 1e-3)],
            bench("privacy", "masks"),
            [python, "shared/privacy/benches/masks.py"],
        ),
        Pair(
            "the same round in the clear",
            [
                Row("a covered round of 10,000 numbers, 3 sites", f"^10000 +covered {number}", f"^10000 +{number}"),
                Row("a covered round of 1,000,000 numbers, 3 sites", f"^1000000 +covered {number}", f"^1000000 +{number}"),
            ],
            bench("wire", "round"),
        ),
        Pair(
            "pandas",
            [Row(f"a {kind} file of 1,000,000 x 100", f"{kind.lower()}: 1000000 patients, {number} s", f"{kind.lower()}: pandas .* rows, {number} s") for kind in ("CSV", "Parquet")],
            bench("site-agent", "read_cohort", str(folder)),
            [python, "site-agent/benches/read_cohort.py", str(folder)],
            [python, "site-agent/benches/read_cohort.py", str(folder), "write"],
        ),
        Pair(
            "scipy",
            [
                Row("UnPSL with held-out figures, 15 sites of 735 x 15", f"fifteen: simulate {number}", f"fifteen: .*NumPy {number}"),
                Row("UnPSL with held-out figures, 4 sites, 100,000 x 68", f"large: simulate {number}", f"large: .*NumPy {number}"),
            ],
            [python, f"{peers}/peers/whole.py", str(programs)],
        ),
    ]


def run(command: list[str]) -> str:
    print(f"  {' '.join(command)}", file=sys.stderr, flush=True)
    threads = {name: "2" for name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")}
    # As deploy/systemd has it.
    pages = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    done = subprocess.run(command, cwd=ROOT, env={**threads, **pages, **os.environ}, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


def seconds(pattern: str, output: str, unit: float) -> float:
    found = re.search(pattern, output, re.MULTILINE)
    if found is None:
        raise SystemExit(f"found no {pattern!r} in:\n{output}")
    return unit * sum(map(float, found.groups()))


def measured(pair: Pair) -> list[tuple[Row, float, float]]:
    if pair.before:
        run(pair.before)
    if pair.theirs:
        turns = [(run(pair.ours), run(pair.theirs)) for _ in range(TURNS)]
    else:
        turns = [(run(pair.ours),) * 2]

    def best(pattern: str, place: int, unit: float) -> float:
        return min(seconds(pattern, turn[place], unit) for turn in turns)

    return [(row, best(row.ours, 0, row.unit), best(row.peers, 1, row.unit)) for row in pair.rows]


def named(peer: str) -> str:
    return peer if " " in peer else f"{peer} {version(peer)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="takes the table and the data")
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", help="the folder of the two programs")
    parser.add_argument("--only", help="the peers whose name has this")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for pair in pairs(folder, arguments.programs.resolve()):
        if arguments.only and arguments.only not in pair.peer:
            continue
        for row, ours, peers in measured(pair):
            lines.append([row.what, f"{ours:.3g}", named(pair.peer), f"{peers:.3g}", f"{peers / ours:.1f}"])
    head = ["work", "Kindred, s", "peer", "peer, s", "times as fast"]
    with (folder / "ratios.csv").open("w", newline="") as file:
        csv.writer(file).writerows([head, *lines])
    table = [head, ["---"] * len(head), *lines]
    text = "\n".join(f"| {' | '.join(line)} |" for line in table)
    text += f"\n\n{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}\n"
    (folder / "ratios.md").write_text(text)
    print(text, end="")


main()
