#!/usr/bin/env python3
"""How long heap dumps stop a program: `tenure dump --snapshot` beside the VM's own dump.

  bench/snapshot.py [--gib 1,4] [--collectors G1,Serial,Parallel] [--pages small,huge] [--jdks HOME,HOME] [--runs 3] [--cores]

A thread of the program ticks every millisecond; the longest time between two ticks is how long the program stood still.
Each round of a setting makes each kind of dump once, in turn:

  idle          no dump, for two seconds
  snapshot      tenure dump --snapshot; also its own figure for the stop, the memory that it cost, and the file
  while writing the same while another thread changes all objects over and over
  moved         tenure dump --snapshot --huge-pages (a new program after it)
  jcmd          jcmd GC.heap_dump -all
  jcmd parallel the same with -parallel=2 (JDK 22 and later)
  frozen        tenure dump --frozen

With --cores each setting also makes a core file with gcore (of gdb), and dumps of that:

  core          tenure dump --core
  jhsdb         jhsdb jmap --binaryheap --core

Prints a row for each: medians of the stops (ms), of the times until the file was whole (s), bytes of the file, objects.
With --tenure PATH, --agent PATH (release builds), --folder DIR for the files.
"""
import argparse, os, re, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = {"small": ["-XX:-UseTransparentHugePages"], "huge": ["-XX:+UseTransparentHugePages"]}


class Program:
    def __init__(self, args, jdk, collector, pages, gib, classes):
        heap = f"{int(gib * 1024 * 1.6)}m"
        java = [os.path.join(jdk, "bin/java"), f"-Xms{heap}", f"-Xmx{heap}", f"-XX:+Use{collector}GC", *FLAGS[pages],
                "-XX:+AlwaysPreTouch", "-XX:+IgnoreUnrecognizedVMOptions", "-XX:+EnableDynamicAgentLoading"]
        java += ["-cp", classes, "Ticker", str(int(gib * 1024))]
        self.child = subprocess.Popen(java, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer("ready")

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.answer("ok", "longest")

    def answer(self, *words):
        for line in self.child.stdout:
            found = line.split()
            if found and found[0] in words:
                return found
        raise SystemExit("the program has ended")

    def end(self):
        self.child.kill()
        self.child.wait()


def dump(program, what, args, jdk, folder):
    """Makes a dump; what it prints, seconds, and the size of the file."""
    path = os.path.join(folder, "bench.hprof")
    if os.path.exists(path):
        os.remove(path)
    pid = str(program.child.pid)
    if what == "idle":
        command = ["sleep", "2"]
    elif what.startswith("jcmd"):
        more = ["-parallel=2"] if what.endswith("parallel") else []
        command = [os.path.join(jdk, "bin/jcmd"), pid, "GC.heap_dump", "-all", *more, path]
    else:
        kind = "--frozen" if what == "frozen" else "--snapshot"
        command = [args.tenure, "dump", pid, kind, "-o", path]
        command += ["--agent", args.agent, "--cow-limit", "16G"] if kind == "--snapshot" else []
        command += ["--huge-pages"] if what == "moved" else []
    begun = time.monotonic()
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seconds = time.monotonic() - begun
    if ran.returncode != 0 or (what != "idle" and not os.path.exists(path)):
        raise SystemExit(f"{' '.join(command)}: {ran.stdout}")
    size = os.path.getsize(path) if what != "idle" else 0
    if size:
        os.remove(path)
    return ran.stdout, seconds, size


def cores(program, args, jdk, rows):
    """Dumps of one core file; the program only stops while gcore writes it."""
    core, path = os.path.join(args.folder, "bench-core"), os.path.join(args.folder, "bench.hprof")
    pid = str(program.child.pid)
    subprocess.run(["gcore", "-o", core, pid], check=True, capture_output=True)
    core += "." + pid
    commands = {
        "core": [args.tenure, "dump", "--core", core, "-o", path],
        "jhsdb": [os.path.join(jdk, "bin/jhsdb"), "jmap", "--binaryheap", "--dumpfile", path, "--exe", os.path.join(jdk, "bin/java"),
                  "--core", core],
    }
    for kind, command in commands.items():
        rows[kind] = []
        for _ in range(args.runs):
            begun = time.monotonic()
            subprocess.run(command, check=True, capture_output=True)
            rows[kind].append((0, time.monotonic() - begun, os.path.getsize(path), None, ""))
            os.remove(path)
    os.remove(core)


def setting(args, jdk, collector, pages, gib, classes):
    release = open(os.path.join(jdk, "release")).read()
    version = re.search(r'JAVA_VERSION="([^"]+)"', release).group(1)
    kinds = ["idle", "snapshot", "while writing", "jcmd", "frozen"]
    if int(version.split(".")[0]) >= 22:
        kinds.insert(4, "jcmd parallel")
    # The last: the program keeps its huge pages.
    kinds.append("moved")
    program = Program(args, jdk, collector, pages, gib, classes)
    rows = {kind: [] for kind in kinds}
    try:
        for run in range(args.runs):
            if run:
                program.end()
                program = Program(args, jdk, collector, pages, gib, classes)
            for kind in kinds:
                if kind == "while writing":
                    program.tell("write on")
                program.tell("reset")
                said, seconds, size = dump(program, kind, args, jdk, args.folder)
                longest = int(program.tell("longest")[1]) / 1000
                program.tell("write off")
                own = re.search(r"stopped for ([0-9.]+) ms at most \(([0-9.]+) ms", said)
                cost = re.search(r"the copy took ([0-9.]+ \w+) of memory", said)
                rows[kind].append((longest, seconds, size, own.groups() if own else None, cost.group(1) if cost else ""))
        if args.cores:
            # jhsdb refuses the core of a program that has loaded an agent, as --snapshot does.
            program.end()
            program = Program(args, jdk, collector, pages, gib, classes)
            cores(program, args, jdk, rows)
    finally:
        program.end()
    for kind, runs in rows.items():
        stop, seconds = (statistics.median(run[i] for run in runs) for i in (0, 1))
        own = "/".join(f"{statistics.median(float(run[3][i]) for run in runs):.1f}" for i in (0, 1)) if runs[0][3] else "-"
        cost = runs[-1][4] or "-"
        print(f"{version:<10} {collector:<9} {pages:<6} {gib:>4} {kind:<14} {stop:>9.1f} {own:>14} {seconds:>8.2f} "
              f"{runs[-1][2] >> 20:>8} {cost:>12}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenure", default=os.path.join(HERE, "../target/release/tenure"))
    parser.add_argument("--agent", default=os.path.join(HERE, "../target/release/libhprof.so"))
    parser.add_argument("--jdks", default=os.environ.get("JAVA_HOME", ""))
    parser.add_argument("--gib", default="1,4")
    parser.add_argument("--collectors", default="G1,Serial,Parallel")
    parser.add_argument("--pages", default="small,huge")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cores", action="store_true")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    args = parser.parse_args()
    args.tenure, args.agent = os.path.abspath(args.tenure), os.path.abspath(args.agent)
    print("stop: the longest time between two ticks; own: what tenure says, in all/the fork; milliseconds, medians of "
          f"{args.runs} runs")
    print(f"{'JDK':<10} {'collector':<9} {'pages':<6} {'GiB':>4} {'dump':<14} {'stop ms':>9} {'own ms':>14} {'file s':>8} "
          f"{'file MiB':>8} {'copy':>12}")
    for jdk in filter(None, args.jdks.split(",")):
        with tempfile.TemporaryDirectory() as classes:
            javac = os.path.join(jdk, "bin/javac")
            subprocess.run([javac, "-d", classes, os.path.join(HERE, "snapshot/Ticker.java")], check=True)
            for gib in map(float, args.gib.split(",")):
                for collector in args.collectors.split(","):
                    for pages in args.pages.split(","):
                        setting(args, jdk, collector, pages, gib, classes)


if __name__ == "__main__":
    main()
