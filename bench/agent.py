#!/usr/bin/env python3
"""What the agent costs: CPU of the same program with and without it, its start, and its heap dumps beside the VM's own.

    bench/agent.py --programs DIR                  DIR holds Mix.java and MixLambda.java; all cases, JDKs from PATH
    bench/agent.py --jdks DIR DIR --cases times    one case on two JDKs
    bench/agent.py --real --jdks DIR               real programs, which Maven gets, instead of Mix and MixLambda; JDK 17 or newer
    bench/agent.py --render bench/results/X.json   print the tables of an earlier run again

Python 3.9 or newer, standard library only, Linux (it reads /proc). README.md says what each figure means.
"""
import argparse, collections, datetime, json, os, re, shutil, signal, statistics, subprocess, sys, tempfile, threading, time
from pathlib import Path

from run import BENCH, MIB, REPO, log, machine, number, run, save, table, wait_for_quiet

# ---------------------------------------------------------------------------------------------------------------
# What is measured. {out} is a scratch name, {agent} our library, {async} that of async-profiler. The first tool of a
# case is the agent; the goal is for agent / no agent.

Case = collections.namedtuple("Case", "title limit tools")

CASES = {
    "times": Case("every call counted and timed", 3, {"cpu=times": "-agentpath:{agent}=cpu=times,file={out}"}),
    "sites": Case("every allocation counted, live objects tracked", 1.6, {
        "heap=sites": "-agentpath:{agent}=heap=sites,file={out}",
        "stacks=sampled": "-agentpath:{agent}=heap=sites,stacks=sampled,file={out}"}),
    "samples": Case("CPU samples each 10 ms", 1.02, {
        "cpu=samples": "-agentpath:{agent}=cpu=samples,file={out}",
        "frames=native": "-agentpath:{agent}=cpu=samples,frames=native,file={out}",
        "frames=kernel": "-agentpath:{agent}=cpu=samples,frames=kernel,file={out}",
        "async-profiler": "-agentpath:{async}=start,event=ctimer,interval=10ms,collapsed,file={out}",
        "JFR": "-XX:StartFlightRecording=settings=profile,filename={out}.jfr"}),
    "wall": Case("elapsed time of all threads sampled each 10 ms", 1.02, {
        "wall=10ms": "-agentpath:{agent}=wall=10ms,file={out}",
        "async-profiler": "-agentpath:{async}=start,wall=10ms,collapsed,file={out}"}),
    "alloc": Case("allocations sampled each 512 KiB, live objects tracked", 1.03, {
        "alloc=512k": "-agentpath:{agent}=alloc=512k,file={out}",
        "async-profiler": "-agentpath:{async}=start,alloc=512k,live,collapsed,file={out}",
        "JFR": "-XX:StartFlightRecording=settings=default,filename={out}.jfr"}),
    "events": Case("the stream of events, objects sampled each 64 KiB", 1.05, {"events=64k": "-agentpath:{agent}=events=64k,file={out}"}),
}
COLLECTORS = ["Serial", "Parallel", "G1"]  # of the case events
# Real programs, with the work of one run: about ten seconds of CPU without the agent.
REAL = {"H2Accounts": "40", "LuceneIndex": "40", "JettyLoad": "100", "EcjCompile": "1", "KotlinCompile": "6", "JythonRun": "25"}
REAL_LIMITS = {"times": 4, "sites": 2}
# Start and end of a program that does nothing, with the least that the agent can be asked for.
START = {"cpu=samples": "-agentpath:{agent}=cpu=samples,file={out}", "alloc=512k": "-agentpath:{agent}=alloc=512k,file={out}",
         "async-profiler": "-agentpath:{async}=start,event=ctimer,interval=10ms,collapsed,file={out}",
         "JFR": "-XX:StartFlightRecording=filename={out}.jfr"}
START_LIMIT = 0.050  # seconds of CPU
DUMP_LIMIT = 1.5
BASE = "no agent"
DUMPS = {BASE: None, "heap=dump": "heap=dump,format=b", "heap=all": "heap=all,format=b,modern=y"}

# ---------------------------------------------------------------------------------------------------------------
# Programs on a JDK.

class Bench:
    """One JDK with the programs compiled for it, and every run made on it."""

    def __init__(self, home, options, libraries, work):
        self.home, self.options, self.libraries, self.work = home, options, libraries, work
        self.name, self.runs = jdk_name(home), []
        self.classes = work / f"classes-{self.name}"
        self.classes.mkdir()
        self.programs, self.jars = [[p, str(options.scale)] for p in options.mixes], []
        sources = [options.programs / f"{p}.java" for p in options.mixes] if options.programs else []
        if options.real:
            self.programs, self.jars = [[p, REAL[p]] for p in options.real], real_jars()
            sources = [BENCH / "agent" / "real" / f"{p}.java" for p in options.real]
            shutil.copy(next(jar for jar in self.jars if jar.name.endswith("-sources.jar")), self.classes / "sources.jar")
        sources += [BENCH / "agent" / "Idle.java"] * ("start" in options.cases)
        sources += [BENCH / "agent" / "Dump.java", BENCH / "dumps" / "Shop.java"] * ("dump" in options.cases)
        # A runtime has no compiler of its own: any of a later JDK makes classes for it.
        own = home / "bin" / "javac"
        compiler = [own] if own.exists() else [shutil.which("javac"), "--release", "17" if options.real else "8"]
        subprocess.run([*compiler, "-nowarn", "-cp", self.class_path(), "-d", self.classes, *sources], check=True)

    def class_path(self):
        return os.pathsep.join(map(str, [self.classes, *self.jars]))

    def java(self, flags, *words):
        out = str(self.work / "out")
        for old in self.work.glob("out*"):
            old.unlink()
        flags = [flags.format(out=out, **self.libraries)] if flags else []
        return [str(self.home / "bin" / "java"), *flags, "-cp", self.class_path(), *words]

    def usable(self, tools):
        """The tools that are here."""
        return {name: flags for name, flags in tools.items() if "{async}" not in flags or "async" in self.libraries}

    def rounds(self, case, tools, program, label=None):
        """Rounds in which the tools take turns, in the reverse order each second time."""
        label = label or program[0]
        order = [(BASE, ""), *self.usable(tools).items()]
        for number_ in range(self.options.reps):
            for tool, flags in order if number_ % 2 == 0 else order[::-1]:
                wait_for_quiet(self.options.quiet)
                result = run(self.java(flags, *program), self.work / "run", False, self.options.timeout)
                result.update(jdk=self.name, case=case, program=label, tool=tool, round=number_)
                self.runs.append(result)
                log(f"JDK {self.name} {case:<8} {label:<9} {tool:<14} {result['cpu']:8.3f} s CPU  others {number(result['others_cores'])} cores"
                    + (f"  EXIT {result['exit']}: {(self.work / 'run.stderr').read_text(errors='replace')[-300:]}" if result["exit"] else ""))

    def measure(self, case):
        if case == "start":
            self.rounds(case, START, ["Idle"])
        elif case == "dump":
            self.dumps()
        elif case == "events":
            for program in self.programs:
                for collector in COLLECTORS:
                    self.rounds(case, CASES[case].tools, [f"-XX:+Use{collector}GC", *program], f"{program[0]} {collector}")
        else:
            for program in self.programs:
                self.rounds(case, CASES[case].tools, program)

    # The step of writing a dump, apart from the program before it.

    def dumps(self):
        """The same heap in processes with and without the agent; each in turn has its dump written."""
        houses = {tool: House(self, tool, options) for tool, options in DUMPS.items()}
        try:
            for number_ in range(-1, self.options.reps):  # the first one warms up
                for tool in list(houses) if number_ % 2 == 0 else list(houses)[::-1]:
                    wait_for_quiet(self.options.quiet)
                    result = houses[tool].dump()
                    result.update(jdk=self.name, case="dump", program=f"Shop {self.options.shop}", tool=tool, round=number_, exit=0)
                    log(f"JDK {self.name} dump     {tool:<14} {result['cpu']:8.3f} s CPU {result['wall']:8.3f} s wall {result['bytes'] / MIB:8.1f} MiB")
                    if number_ >= 0:
                        self.runs.append(result)
        finally:
            for house in houses.values():
                house.close()


class House:
    """A running JVM with a heap in it."""

    def __init__(self, bench, tool, options):
        self.bench, self.options = bench, options
        self.file = bench.work / f"dump-{re.sub('[^a-z]', '', tool)}.hprof"
        flags = f"-agentpath:{{agent}}={options},doe=n,file={self.file}" if options else ""
        self.process = subprocess.Popen(bench.java(flags, "Shop", str(bench.options.shop), "-"), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"{tool}: the program did not start")
        # The VM answers the signal, too, with the stacks of all threads.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.size = self.length()

    def cpu(self):
        """CPU seconds of the process so far, in ticks of 10 ms."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def length(self):
        return self.file.stat().st_size if self.file.exists() else 0

    def wait_for_rest(self, most=60):
        """Until the program has done nothing for half a second: its compilers go on for a while after the work."""
        end = time.monotonic() + most
        while time.monotonic() < end:
            before = self.cpu()
            time.sleep(0.5)
            if self.cpu() == before:
                return

    def dump(self):
        self.wait_for_rest()
        before, start = self.cpu(), time.perf_counter()
        if self.options:
            self.process.send_signal(signal.SIGQUIT)
            while "done." not in (line := self.process.stderr.readline()):
                if not line:
                    sys.exit("the program has ended")
        else:
            self.file.unlink(missing_ok=True)
            subprocess.run([self.bench.home / "bin" / "jcmd", str(self.process.pid), "GC.heap_dump", str(self.file)], check=True, stdout=subprocess.DEVNULL)
            self.size = 0
        result = {"wall": time.perf_counter() - start, "cpu": self.cpu() - before, "bytes": self.length() - self.size}
        self.size = self.length()
        return result

    def close(self):
        self.process.kill()
        self.process.wait()
        self.file.unlink(missing_ok=True)

# ---------------------------------------------------------------------------------------------------------------
# From runs to figures, from figures to text.

def ratios(results, key):
    """The CPU of each round of a tool by that of the same round without the agent."""
    of = lambda tool: {r["round"]: r["cpu"] for r in results["runs"] if (r["jdk"], r["case"], r["program"], r["tool"]) == (*key[:3], tool) and not r["exit"]}
    base, ours = of(BASE), of(key[3])
    return [(ours[n], base[n]) for n in sorted(ours) if base.get(n)]


def keys(results):
    """(jdk, case, program, tool) of everything but the runs without the agent, in the order of running."""
    return list(dict.fromkeys((r["jdk"], r["case"], r["program"], r["tool"]) for r in results["runs"] if r["tool"] != BASE))


def limit(key):
    """What is promised: (value, whether it is a difference in seconds); None of a peer."""
    _, case, program, tool = key
    if case == "start":
        return (START_LIMIT, True) if tool in list(START)[:2] else None
    if case == "dump":
        return DUMP_LIMIT, False
    most = REAL_LIMITS.get(case, CASES[case].limit) if program in REAL else CASES[case].limit
    return (most, False) if tool == next(iter(CASES[case].tools)) else None


def render(results):
    m, cases = results["machine"], {case: CASES[case].title for case in CASES}
    cases.update(start="start and end of a program that does nothing", dump="the step of writing a heap dump, the VM's own being 1")
    text = [f"# Cost of the agent, {results['date']}", "", f"{m['cores']} cores ({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}; " + "; ".join(results["versions"]) + ".", ""]
    text += [results["note"], ""] if results.get("note") else []
    text += ["CPU is user + system of the process. A ratio is that of two neighbouring runs; the table has the median and the extremes. "
             "*others* is the most that the rest of the machine used during a run, in cores.", ""]
    for case, title in cases.items():
        rows = []
        for key in (k for k in keys(results) if k[1] == case):
            pairs, goal = ratios(results, key), limit(key)
            if not pairs:
                continue
            runs = [r for r in results["runs"] if (r["jdk"], r["case"], r["program"]) == key[:3]]
            mine = [r for r in runs if r["tool"] == key[3]]
            difference = case == "start"
            values = sorted(a - b if difference else a / b for a, b in pairs)
            middle = statistics.median(values)
            shown = (lambda x: f"{x * 1000:+.0f} ms") if difference else (lambda x: f"{x:.3f}")
            verdict = "" if goal is None else f"{shown(goal[0]).lstrip('+')}: {'met' if middle <= goal[0] else 'MISSED'}"
            walls = [statistics.median(r["wall"] for r in runs if r["tool"] == tool) for tool in (key[3], BASE)]
            rows.append([key[0], key[2], key[3], len(values), number(statistics.median(a for a, _ in pairs)), number(statistics.median(b for _, b in pairs)),
                         shown(middle), f"{shown(values[0])} to {shown(values[-1])}", f"{walls[0] / walls[1]:.2f}",
                         number(max((r["others_cores"] for r in mine if r.get("others_cores") is not None), default=None)), verdict])
        if rows:
            text += [f"## {case}: {title}", "", table(["JDK", "program", "tool", "runs", "CPU s", "without", "added" if case == "start" else "ratio", "least to most", "wall ratio", "others", "at most"], rows), ""]
    text += ["## What was run", ""]
    tools = [(case, c.tools) for case, c in CASES.items()] + [("start", START), ("dump", {t: o for t, o in DUMPS.items() if o})]
    text += [f"* {case}: " + "; ".join(f"`{flags}`" for flags in of.values()) for case, of in tools]
    return "\n".join(text) + "\n"

# ---------------------------------------------------------------------------------------------------------------
# Finding the JDKs and libraries.

def jdk_name(home):
    if (home / "release").is_file():
        said = (home / "release").read_text()
    else:  # Debian's packages of JDK 8 have no such file.
        said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True).stderr
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', said)
    return found[1] if found else home.name


def real_jars():
    """The jars of the real programs, which Maven gets once."""
    folder, part = BENCH / "target" / "real", BENCH / "target" / "real.part"
    if not folder.is_dir():
        subprocess.run(["mvn", "-q", "-B", "-f", BENCH / "agent" / "real" / "pom.xml", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
                        f"-DoutputDirectory={part}"], check=True)
        part.rename(folder)  # Whole, or not there.
    return sorted(folder.glob("*.jar"))


def find_libraries(options):
    agent = options.agent
    if not agent:
        subprocess.run(["cargo", "build", "--release", "-p", "agent"], cwd=REPO, check=True)
        meta = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=REPO, check=True, capture_output=True, text=True)
        agent = Path(json.loads(meta.stdout)["target_directory"]) / "release" / "libhprof.so"
    libraries = {"agent": Path(agent).absolute()}
    peer = next((p / n for p in [options.peers] if p for n in ("libasyncProfiler.so", "lib/libasyncProfiler.so") if (p / n).is_file()), None)
    if peer:
        libraries["async"] = peer.absolute()
    else:
        log("without async-profiler")
    return libraries


def parse_arguments():
    every = [*CASES, "start", "dump"]
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0], epilog="example: bench/agent.py --programs ~/workloads --peers ~/peers --reps 5 --save")
    p.add_argument("--programs", type=Path, help="folder with Mix.java and MixLambda.java")
    p.add_argument("--mixes", nargs="+", default=["Mix", "MixLambda"], metavar="NAME", help="programs in it (default: Mix MixLambda)")
    p.add_argument("--real", nargs="*", choices=REAL, metavar="NAME", help=f"real programs instead, all or some of {' '.join(REAL)}; wants Maven and a JDK from 17 on")
    p.add_argument("--scale", type=int, default=80, help="rounds of work in one run of them (default 80, in which the compilers have long ended)")
    p.add_argument("--shop", type=int, default=64000, help="size of the heap that is dumped (default 64000: 4 million objects)")
    p.add_argument("--jdks", nargs="+", type=Path, metavar="HOME", help="JDKs (default: the one of `java` on PATH)")
    p.add_argument("--agent", type=Path, help="this libhprof.so instead of building the release one")
    p.add_argument("--peers", type=Path, help="folder with libasyncProfiler.so, or with a lib/ that holds it")
    p.add_argument("--cases", nargs="+", choices=every, default=every, help="only these")
    p.add_argument("--reps", type=int, default=5, help="rounds (default 5)")
    p.add_argument("--timeout", type=float, default=3600, help="seconds after which one run is ended")
    p.add_argument("--quiet", type=float, default=5, help="before each run wait so many seconds at most for the rest of the machine to be quiet (default 5)")
    p.add_argument("--note", default="", help="a sentence to keep with the results")
    p.add_argument("--save", action="store_true", help="write bench/results/DATE-agent-MACHINE.json and .md")
    p.add_argument("--render", type=Path, metavar="JSON", help="print the tables of an earlier run and stop")
    options = p.parse_args()
    if options.real == []:
        options.real = list(REAL)
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_arguments()
    if options.render:
        print(render(json.loads(options.render.read_text())))
        return
    if not options.programs and not options.real and set(options.cases) & set(CASES):
        sys.exit("--programs DIR must name the folder of Mix.java (or give --cases start dump)")
    homes = options.jdks or [Path(shutil.which("java") or sys.exit("no java on PATH")).resolve().parent.parent]
    libraries = find_libraries(options)
    results = {"date": datetime.date.today().isoformat(), "machine": machine(), "note": options.note, "versions": [], "runs": []}
    for home in homes:
        said = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True).stderr
        results["versions"].append(said.splitlines()[1].strip() if said.count("\n") > 1 else str(home))
        with tempfile.TemporaryDirectory(prefix="bench-agent-") as work:
            bench = Bench(home, options, libraries, Path(work))
            try:
                for case in options.cases:
                    bench.measure(case)
            finally:
                results["runs"] += bench.runs
    print(render(results))
    if options.save:
        save(results, render(results), "agent-")


if __name__ == "__main__":
    main()
