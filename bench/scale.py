#!/usr/bin/env python3
"""What the agent costs programs with very many virtual threads, classes and loaders.

    bench/scale.py --java JDK25 --save             all cases: some minutes on a quiet machine
    bench/scale.py --java JDK25 --cases hidden     one case
    bench/scale.py --into bench/results/X.json --cases million    one more case, added to an earlier run
    bench/scale.py --render bench/results/X.json   print the table of an earlier run again

Python 3.9 or newer, standard library only, Linux. README.md says what each figure means.
"""
import argparse, json, re, shutil, signal, statistics, subprocess, sys, tempfile
from pathlib import Path

from agent import BASE, find_libraries, jdk_name
from run import BENCH, MIB, REPO, arguments_of_runs, keep_runs, log, machine, number, run, table, wait_for_quiet

CASES = {
    "threads": (["VirtualThreads", "100000", "200"], "100,000 virtual threads, 200 at a time"),
    "crowd": (["VirtualThreads", "100000", "10000"], "100,000 virtual threads, 10,000 at a time"),
    "million": (["VirtualThreads", "1000000", "10000"], "1,000,000 virtual threads, 10,000 at a time"),
    "hidden": (["ManyClasses", "hidden", "20000"], "20,000 hidden classes, each called once"),
    "loaders": (["ManyClasses", "loaders", "1000"], "1,000 loaders with 100 classes each, each called once"),
}
# Nothing is recorded before the heap is exhausted, which happens in no case: what it costs to load the agent.
LOADED = "oom=snapshot"
TOOLS = [LOADED, "heap=sites", "cpu=times", "cpu=samples", "alloc=512k", "events=64k"]
# CPU with the agent by CPU without, at most; of the first case only.
LIMITS = {"heap=sites": 3, "cpu=times": 6, "cpu=samples": 1.05, "alloc=512k": 1.05}
HEAP_LIMIT = 64 * MIB  # more Java heap than without, in every case


def compile_programs(home, classes):
    tests = REPO / "crates" / "agent" / "tests" / "java"
    sources = [BENCH / "scale" / "VirtualThreads.java", tests / "ManyClasses.java", tests / "Generated0000.java"]
    subprocess.run([home / "bin" / "javac", "-nowarn", "-g", "-d", classes, *sources], check=True)


def measure(options, home, agent, work):
    """Every tool once in each round, the order reversed each second time."""
    runs = []
    compile_programs(home, work)
    for round_ in range(options.reps):
        for case in options.cases:
            tools = [BASE, *options.tools]
            for tool in tools if round_ % 2 == 0 else tools[::-1]:
                wait_for_quiet(options.quiet)
                out = work / "out"
                flags = [] if tool == BASE else [f"-agentpath:{agent}={tool},file={out}"]
                argv = [str(home / "bin" / "java"), "-Xmx2g", *flags, "-cp", str(work), *CASES[case][0]]
                result = run(argv, work / "run", False, options.timeout)
                said = (work / "run.stdout").read_text(errors="replace")
                heap = re.search(r"^heap (\d+)", said, re.M)
                result.update(case=case, tool=tool, round=round_, heap=int(heap[1]) * 1024 if heap else None)
                runs.append(result)
                log(f"{case:<8} {tool:<12} {result['cpu']:8.2f} s CPU {result['wall']:8.2f} s wall, heap {number((result['heap'] or 0) / MIB)} MiB, "
                    f"resident {number(result['peak_rss'] / MIB)} MiB" + (f"  EXIT {result['exit']}" if result["exit"] else ""))
                out.unlink(missing_ok=True)
    return runs


def render(results):
    m = results["machine"]
    text = [f"# Scale, {results['date']}", "", f"{m['cores']} cores ({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}; {results['version']}.", ""]
    text += [results["note"], ""] if results.get("note") else []
    text += ["CPU is user + system of the process, start and compilers included; heap is what a collection at the end leaves; resident is the "
             "process's high-water mark (the collector takes what -Xmx2g allows before it collects). Medians.", ""]
    for case, (words, title) in CASES.items():
        runs = [r for r in results["runs"] if r["case"] == case]
        of = lambda tool, key: statistics.median([r[key] for r in runs if r["tool"] == tool and not r["exit"] and r[key] is not None] or [float("nan")])
        rows = []
        for tool in dict.fromkeys(r["tool"] for r in runs):
            ratio, heap = of(tool, "cpu") / of(BASE, "cpu"), of(tool, "heap")
            goals = []
            if case == "threads" and tool in LIMITS:
                goals.append(f"CPU {LIMITS[tool]}: {'met' if ratio <= LIMITS[tool] else 'MISSED'}")
            if tool != BASE:
                goals.append(f"heap +64 MiB: {'met' if heap - of(BASE, 'heap') <= HEAP_LIMIT else 'MISSED'}")
            ended = sum(1 for r in runs if r["tool"] == tool and r["exit"])
            name = f"{tool} (loaded only)" if tool == LOADED else tool
            rows.append([name, len(runs) and sum(1 for r in runs if r["tool"] == tool), number(of(tool, "cpu")), number(ratio), number(of(tool, "wall")),
                         number(heap / MIB), number(of(tool, "peak_rss") / MIB), "; ".join(goals) + (f" {ended} FAILED" if ended else "")])
        if rows:
            text += [f"## {case}: {title}", "", f"`{' '.join(words)}`", "",
                     table(["tool", "runs", "CPU s", "ratio", "wall s", "heap MiB", "resident MiB", "at most"], rows), ""]
    return "\n".join(text)


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0], epilog="example: bench/scale.py --java /usr/lib/jvm/jdk-25 --reps 3 --save")
    p.add_argument("--java", type=Path, metavar="HOME", help="a JDK from 21 on (default: the one of `java` on PATH)")
    p.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="only these")
    p.add_argument("--tools", nargs="+", default=TOOLS, metavar="OPTIONS", help=f"options of the agent (default: {' '.join(TOOLS)})")
    p.add_argument("--timeout", type=float, default=900, help="seconds after which one run is ended")
    arguments_of_runs(p, "scale")
    return p.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_arguments()
    if options.render:
        print(render(json.loads(options.render.read_text())))
        return
    home = options.java or Path(shutil.which("java") or sys.exit("no java on PATH")).resolve().parent.parent
    if int(re.sub(r"\D", "", jdk_name(home)) or 0) < 21:
        sys.exit("virtual threads need a JDK from 21 on (--java HOME)")
    earlier = json.loads(options.into.read_text()) if options.into and options.into.exists() else None
    options.peers = None
    agent = find_libraries(options)["agent"]
    said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True).stderr
    version = said.splitlines()[1].strip() if said.count("\n") > 1 else str(home)
    if earlier and (earlier["machine"], earlier["version"]) != (machine(), version):
        sys.exit(f"{options.into} has runs of another machine or JDK")
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as work:
        runs = measure(options, home, agent, Path(work))
    keep_runs(options, render, "scale", runs, earlier, version=version)


if __name__ == "__main__":
    main()
