#!/usr/bin/env python3
"""A heap of more than 2^31 objects: what `tenure leaks` needs for it, and whether its answers are the true ones.

    bench/dumps/make.sh DIR d50g                                   write the dump (51 GB) and what is true of it
    bench/billions.py --dump DIR/d50g.hprof --cache DIR2 --save    analyze it, compare the answers, keep the result

DIR2 gets the index and temporary files, 60 GB in all. Python 3.9 or newer, standard library only, Linux. The exit code is 1 if
an answer is not the true one.
"""
import argparse, datetime, json, shutil, sys, tempfile
from pathlib import Path

from run import MIB, build_tenure, log, machine, run, save, table, version

GIB = 1 << 30
OWNERS = ("ledger", "archive", "catalog")
CLASS_OBJECTS = 8 * 8 + 3 * 16  # of the dump's eleven classes three have a static field


def judge(leaks, histogram, truth):
    """Each figure: its name, the true one, the answer."""
    points = {p["object"]: p["retained"] for p in (s.get("accumulation_point") for s in leaks["suspects"]) if p}
    rows = [(f"retained by {name}", truth[name]["retained"], points.get(hex(truth[name]["id"]))) for name in OWNERS]
    alive = sum(truth[name]["retained"] for name in OWNERS) + truth["values_without_owner"]["bytes"]
    rows.append(("bytes of all reachable objects", alive + CLASS_OBJECTS, leaks["total"]))
    counts = {row["class"]: row["objects"] for row in histogram["rows"]}
    links = truth["ledger"]["objects"] - 1
    true = {"Link": links - truth["pairs"], "Pair": truth["pairs"], "Folder": truth["archive"]["objects"] - 1}
    return rows + [(f"reachable objects of {name}", count, counts.get(name)) for name, count in true.items()]


def render(results):
    phases, dump = results["phases"], results["dump"]
    out = [f"# A heap of {results['objects']:,} objects\n", results["note"] + "\n" if results["note"] else "",
           f"{dump['bytes'] / GIB:.1f} GiB with 4-byte ids; `--max-memory {results['limit']}`; {results['machine']['cpu']}, {results['machine']['cores']} cores, "
           f"{results['machine']['memory_gib']} GiB; {results['version']}.\n"]
    out.append(table(["command", "wall s", "CPU s", "anonymous memory GiB", "with dirty pages of temporary files GiB", "read from disk GiB"],
                     [[name, f"{r['wall']:.1f}", f"{r['cpu']:.1f}", f"{r['anonymous'] / GIB:.2f}", f"{r['private'] / GIB:.2f}", f"{r['read_from_disk'] / GIB:.1f}"] for name, r in results["runs"].items()]))
    out.append(f"\nMemory is the most of samples each two seconds. Index: {results['index'] / GIB:.1f} GiB.\n")
    out.append(table(["figure", "true", "answer"], [[name, f"{true:,}", f"{got:,}" if got is not None else "none"] for name, true, got in results["figures"]]))
    return "\n".join(part for part in out if part) + f"\n\n```\n{phases}\n```\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dump", type=Path, required=True, help="the dump; what is true of it is in DUMP.expected.json")
    p.add_argument("--cache", type=Path, required=True, help="folder for the index and temporary files")
    p.add_argument("--limit", default="16G", help="--max-memory of both commands (default 16G)")
    p.add_argument("--tenure", type=Path, help="this program instead of building the release one")
    p.add_argument("--note", default="", help="a sentence to keep with the results")
    p.add_argument("--save", action="store_true", help="write bench/results/DATE-billions-MACHINE.json and .md")
    options = p.parse_args()
    tenure = str(options.tenure or build_tenure())
    truth = json.loads(Path(f"{options.dump}.expected.json").read_text())
    common = [str(options.dump), "--json", "--max-memory", options.limit, "--cache-dir", str(options.cache)]
    commands = {"leaks": ["leaks", "--profile-phases"], "histogram from the index": ["histogram", "--limit", "0"]}
    work, runs, answers, phases = Path(tempfile.mkdtemp()), {}, {}, ""
    for name, (command, *more) in commands.items():
        runs[name] = run([tenure, command, *common, *more], work / command, True, 4 * 3600, pause=2)
        log(f"{name}: {runs[name]['wall']:.1f} s, {runs[name]['cpu']:.1f} s CPU, {runs[name]['private'] / MIB:.0f} MiB private, exit {runs[name]['exit']}")
        if runs[name]["exit"]:
            sys.exit((work / f"{command}.stderr").read_text())
        answers[command] = json.loads((work / f"{command}.stdout").read_text())
        phases = phases or (work / f"{command}.stderr").read_text().strip()
    figures = judge(answers["leaks"], answers["histogram"], truth)
    index = sum(f.stat().st_size for f in options.cache.rglob("*") if f.is_file())
    shutil.rmtree(work)
    results = {"date": datetime.date.today().isoformat(), "machine": machine(), "version": "tenure " + version("tenure", tenure), "note": options.note,
               "limit": options.limit, "objects": truth["objects"], "dump": {"bytes": options.dump.stat().st_size}, "index": index,
               "runs": runs, "figures": figures, "phases": phases}
    text = render(results)
    print(text)
    if options.save:
        save(results, text, "billions-")
    wrong = [name for name, true, got in figures if true != got]
    sys.exit(f"not the true answer: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
