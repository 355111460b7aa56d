#!/usr/bin/env python3
"""Asks Eclipse MAT's own parser and snapshot what is in dumps, and writes how many rows each answer has and their digest.

    bench/mat.py haha-1.3.jar CORPUS crates/heap-query/tests/data/mat_answers.txt [ROWS]
    bench/mat.py haha-1.3.jar --peer PEERS       # makes PEERS/bin/haha, the peer of bench/run.py (mat/Analyze.java)

The library is Square's HAHA (com.squareup.haha:haha:1.3 of Maven Central): MAT's parser, indexes, dominator tree and snapshot
of 2015 without Eclipse around them. It leaves out the referents of all `java.lang.ref` classes (`--strength=strong`) and has
no OQL: the queries of MAT's help are calls of its snapshot (mat/HelpQueries.java). The dumps are those that the file
names (`# dump: NAME`), looked for below CORPUS; with ROWS the rows themselves are written to that folder.
"""

import gzip
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent / "mat"


def unpacked(corpus, name, folder):
    """The dump as a plain file in the folder."""
    found = [p for p in corpus.rglob("*.hprof*") if p.name.removesuffix(".gz") == name.removesuffix(".gz")]
    if not found:
        sys.exit(f"{name} is not below {corpus}")
    data = found[0].read_bytes()
    path = folder / (name.removesuffix(".gz").removesuffix(".hprof") + ".hprof")
    path.write_bytes(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return path


PEER = """#!/bin/sh
# Eclipse MAT's parser, indexes and dominator tree, as HAHA 1.3 packs them: haha DUMP.
[ "$1" = --version ] && exec echo haha 1.3
exec java -Xmx8g -cp {jar}:{classes} Analyze "$1"
"""


def peer(jar, peers):
    classes = pathlib.Path(peers).absolute() / "haha"
    subprocess.run(["javac", "-cp", jar, "-d", classes, HERE / "Analyze.java"], check=True)
    script = classes.parent / "bin" / "haha"
    script.parent.mkdir(exist_ok=True)
    script.write_text(PEER.format(jar=pathlib.Path(jar).absolute(), classes=classes), encoding="utf-8")
    script.chmod(0o755)


def main(jar, corpus, answers, rows=None):
    answers = pathlib.Path(answers)
    text = answers.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("#") and not line.startswith("# dump: ")]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        classes = scratch / "classes"
        subprocess.run(["javac", "-cp", jar, "-d", classes, *HERE.glob("*.java")], check=True)
        for name, what in re.findall(r"^# dump: (\S+) (\w+)$", text, re.M):
            folder = scratch / what / name
            folder.mkdir(parents=True)
            dump = unpacked(pathlib.Path(corpus), name, folder)
            command = ["java", "-cp", f"{jar}:{classes}", "Snapshot", what, dump]
            if rows:
                command.append(pathlib.Path(rows) / name / what)
            # What it cannot name it reports with a stack trace each.
            said = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
            lines += [f"# dump: {name} {what}", *said.splitlines()]
            print(lines[-1])
    answers.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    (peer(sys.argv[1], sys.argv[3]) if sys.argv[2] == "--peer" else main(*sys.argv[1:]))
