#!/usr/bin/env python3
"""What tracked objects cost a program under generational ZGC: garbage that young collections leave, and threads that wait for memory.

    bench/zgc.py --java JDK25 --save                       all cases: about half an hour on a quiet machine
    bench/zgc.py --java JDK25 --shapes queue --tools plain heap=sites    some of them
    bench/zgc.py --into bench/results/X.json --java JDK21  more runs, added to an earlier run
    bench/zgc.py --render bench/results/X.json             print the tables of an earlier run again

Python 3.9 or newer, standard library only, Linux. README.md says what each figure means.
"""
import argparse, json, re, shutil, signal, statistics, subprocess, sys, tempfile
from pathlib import Path

from agent import BASE, find_libraries, jdk_name
from run import BENCH, MIB, arguments_of_runs, keep_runs, log, machine, number, run, table, wait_for_quiet

THREADS, HEAP, LIVE = 4, "512m", 64
# What the threads do, and how many requests a second they answer together.
SHAPES = {
    "requests": (4000, "trees of small objects, the last 2,000 of each thread kept"),
    "buffers": (1000, "a buffer of 256 KiB to 1 MiB for each request"),
    "queue": (4000, "a linked queue, each element of which refers to the next"),
}
TOOLS = [BASE, "heap=sites", "heap=sites,tracked=0", "alloc=512k", "alloc=512k,tracked=0", "events=64k"]
SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
AFTER = re.compile(r"GC\(\d+\) (Minor|Major) Collection \(([^)]*)\) (\d+)([KMG])\(\d+%\)->(\d+)([KMG])\(\d+%\)")
STALL = re.compile(r"Allocation Stall \([^)]*\) ([\d.]+)ms")
NOTE = re.compile(r"NOTE: (.*tracked.*)")


def collections(path):
    """What a log of collections says: bytes in use after each of both kinds, and milliseconds of each stall."""
    text = path.read_text(errors="replace")
    after = {"Minor": [], "Major": []}
    for kind, _, _, _, size, unit in AFTER.findall(text):
        after[kind].append(int(size) * SIZES[unit])
    return {"minor": after["Minor"], "major": after["Major"], "stalls": [float(ms) for ms in STALL.findall(text)]}


def measure(options, home, agent, work):
    """Every tool once in each round, the order reversed each second time."""
    runs, jdk = [], jdk_name(home)
    # JDK 21 has both kinds of ZGC, and the older one is its default.
    flags = ["-XX:+UseZGC", f"-Xmx{HEAP}", f"-Xlog:gc:file={work / 'gc.log'}"] + (["-XX:+ZGenerational"] if int(re.sub(r"\D", "", jdk)) < 23 else [])
    for round_ in range(options.reps):
        for shape in options.shapes:
            for tool in options.tools if round_ % 2 == 0 else options.tools[::-1]:
                wait_for_quiet(options.quiet)
                out = work / "out"
                load = [] if tool == BASE else [f"-agentpath:{agent}={tool},file={out}"]
                program = ["Serve", shape, str(options.seconds), str(THREADS), str(SHAPES[shape][0]), str(LIVE)]
                result = run([str(home / "bin" / "java"), *flags, *load, "-cp", str(work), *program], work / "run", False, options.seconds * 20)
                said = (work / "run.stdout").read_text(errors="replace")
                late = re.search(r"^late (\d+) (\d+) (\d+)", said, re.M)
                notes = NOTE.findall(out.read_text(errors="replace")) if out.exists() else []
                result.update(jdk=jdk, shape=shape, tool=tool, round=round_, late=[int(us) for us in late.groups()] if late else None, notes=notes, **collections(work / "gc.log"))
                runs.append(result)
                after = result["minor"] or [0]
                log(f"{jdk} {shape:<9} {tool:<24} {result['cpu']:7.2f} s CPU, {len(after)} minor, {len(result['major'])} major, in use after a minor one "
                    f"{number(statistics.median(after) / MIB)} MiB, at most {number(max(after) / MIB)}, {len(result['stalls'])} stalls of {number(sum(result['stalls']))} ms"
                    + (f"  EXIT {result['exit']}" if result["exit"] else ""))
                for path in (out, work / "gc.log"):
                    path.unlink(missing_ok=True)
    return runs


def render(results):
    m = results["machine"]
    text = [f"# Tracked objects under generational ZGC, {results['date']}", "",
            f"{m['cores']} cores ({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}; -Xmx{HEAP}, {LIVE} MiB of live objects, {THREADS} threads.", ""]
    text += [results["note"], ""] if results.get("note") else []
    text += ["In use: what a young (minor) collection leaves, the median of all of a run and the most. Stalls: how often a thread waited for memory in all "
             "rounds, and the longest wait. Late: how long after they were due one in a thousand answers came. Medians of the rounds.", ""]
    for jdk in dict.fromkeys(r["jdk"] for r in results["runs"]):
        for shape, (_, words) in SHAPES.items():
            rows = []
            for tool in dict.fromkeys(r["tool"] for r in results["runs"]):
                runs = [r for r in results["runs"] if (r["jdk"], r["shape"], r["tool"]) == (jdk, shape, tool)]
                if not runs:
                    continue
                median = lambda of: statistics.median([of(r) for r in runs])
                stalls = [ms for r in runs for ms in r["stalls"]]
                ended = sum(1 for r in runs if r["exit"])
                rows.append([tool, len(runs), number(median(lambda r: r["cpu"])), number(median(lambda r: len(r["minor"]))), number(median(lambda r: len(r["major"]))),
                             number(median(lambda r: statistics.median(r["minor"] or [0])) / MIB), number(max(max(r["minor"] or [0]) for r in runs) / MIB),
                             len(stalls), number(max(stalls, default=0.0)), number(median(lambda r: (r["late"] or [0, 0, 0])[1]) / 1000) + (f" {ended} FAILED" if ended else "")])
            if rows:
                text += [f"## JDK {jdk}, {shape}: {words}", "",
                         table(["tool", "runs", "CPU s", "minor", "major", "in use MiB", "most MiB", "stalls", "longest ms", "late ms"], rows), ""]
    return "\n".join(text)


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0], epilog="example: bench/zgc.py --java /usr/lib/jvm/jdk-25 --reps 3 --save")
    p.add_argument("--java", type=Path, metavar="HOME", help="a JDK from 21 on (default: the one of `java` on PATH)")
    p.add_argument("--javac", type=Path, metavar="FILE", help="compiles the program (default: that of --java)")
    p.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES), help="only these")
    p.add_argument("--tools", nargs="+", default=TOOLS, metavar="OPTIONS", help=f"`{BASE}`, or options of the agent (default: {' '.join(TOOLS)})")
    p.add_argument("--seconds", type=int, default=30, help="of each run (default 30)")
    arguments_of_runs(p, "zgc")
    return p.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_arguments()
    if options.render:
        print(render(json.loads(options.render.read_text())))
        return
    home = options.java or Path(shutil.which("java") or sys.exit("no java on PATH")).resolve().parent.parent
    if int(re.sub(r"\D", "", jdk_name(home)) or 0) < 21:
        sys.exit("generational ZGC needs a JDK from 21 on (--java HOME)")
    earlier = json.loads(options.into.read_text()) if options.into and options.into.exists() else None
    if earlier and earlier["machine"] != machine():
        sys.exit(f"{options.into} has runs of another machine")
    options.peers = None
    agent = find_libraries(options)["agent"]
    with tempfile.TemporaryDirectory(prefix="bench-zgc-") as work:
        subprocess.run([options.javac or home / "bin" / "javac", "--release", "21", "-nowarn", "-g", "-d", work, BENCH / "zgc" / "Serve.java"], check=True)
        runs = measure(options, home, agent, Path(work))
    keep_runs(options, render, "zgc", runs, earlier)


if __name__ == "__main__":
    main()
