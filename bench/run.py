#!/usr/bin/env python3
"""Times tenure against its peers on the same heap dumps in one run, and checks that the answers agree.

    bench/run.py --peers DIR heap.hprof ...        measure these dumps, print the tables
    bench/run.py --make d50 --peers DIR --save     make a dump first, keep the results in bench/results/
    bench/run.py --render bench/results/X.json     print the tables of an earlier run again

Python 3.9 or newer, standard library only, Linux (it reads /proc). README.md says what each figure means.
"""
import argparse, collections, datetime, json, math, os, platform, re, shlex, shutil, signal, statistics, subprocess, sys, threading, time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
REPO = BENCH.parent
MIB = 1 << 20

# ---------------------------------------------------------------------------------------------------------------
# What is measured. A command is a list of words; {dump} is the heap dump, {out} a scratch name without extension.

Case = collections.namedtuple("Case", "title index memory commands")  # index: "drop" it before each run, or "keep" it

CASES = {
    "histogram": Case("class histogram, no index", "drop", True, {
        "tenure": "histogram {dump} --no-retained --json --limit 0",
        "hprof-slurp": "{dump} --top 1000000 --json -o {out}.json",
        "wc": "-l {dump}"}),
    "report": Case("full analysis with retained sizes, leaks and a Markdown report, no index", "drop", True, {
        "tenure": "report {dump} -o {out}.md --force",
        "hprof-analyzer": "{dump} {out}.md",
        "haha": "{dump}"}),
    "index": Case("first analysis that leaves an index for the next one", "drop", False, {
        "tenure": "histogram {dump}",
        "hprof-analyzer": "heap load {dump}",
        "haha": "{dump}"}),
    "reopen": Case("class histogram with retained sizes, from the index", "keep", True, {
        "tenure": "histogram {dump}",
        "hprof-analyzer": "heap histogram {dump}",
        "haha": "{dump}"}),
    "join": Case("join of all references with the objects that they lead to, from the index", "keep", False, {
        "tenure": ["query", "{dump}", 'select count(*), sum(o.shallow) from "references" r join objects o on o.id = r.to_id']}),
    "strings": Case("equal strings, from the index", "keep", False, {"tenure": "strings {dump}"}),
    "collections": Case("fill of collections, from the index", "keep", False, {"tenure": "collections {dump}"}),
}

# Where a tool leaves its index, beside the dump ({stem} is the dump without its extension).
INDEXES = {"tenure": "{dump}.tenure", "hprof-analyzer": "{dump}.hprof-cache", "haha": "{stem}.*index"}
# `wc -l` stands for the least a program can do that looks at every byte: it is a yardstick, not a peer.
TOOLS = ["tenure", "hprof-slurp", "hprof-analyzer", "haha", "wc"]

# ---------------------------------------------------------------------------------------------------------------
# What is promised. `figure` is a key of summarize(); with a peer the limit is for tenure / peer.

Goal = collections.namedtuple("Goal", "text case figure peer limit unit largest")

GOALS = [
    Goal("histogram: CPU", "histogram", "cpu", "hprof-slurp", 0.2, "of the peer", None),
    Goal("histogram: CPU", "histogram", "cpu", "wc", 1.5, "of the peer", None),
    Goal("histogram: private memory", "histogram", "private", None, 32 * MIB, "bytes", None),
    Goal("full analysis: CPU", "report", "cpu", "hprof-analyzer", 0.10, "of the peer", None),
    Goal("full analysis: wall", "report", "wall", "hprof-analyzer", 0.06, "of the peer", None),
    Goal("full analysis: CPU", "report", "cpu", "haha", 0.05, "of the peer", None),
    Goal("full analysis: private memory per object", "report", "private_per_object", None, 18, "bytes", None),
    Goal("reopening: wall", "reopen", "wall", None, 0.010, "s", None),
    Goal("reopening: private memory", "reopen", "private", None, 20 * MIB, "bytes", None),
    Goal("index on disk per object", "index", "index_per_object", None, 13, "bytes", None),
    Goal("join of all references: wall", "join", "wall", None, 20, "s", None),
    Goal("equal strings: CPU", "strings", "cpu", None, 1.5, "s", None),
    Goal("fill of collections: CPU", "collections", "cpu", None, 1.5, "s", None),
    Goal("small dump, end to end with report: wall", "report", "wall", None, 0.15, "s", 64 * MIB),
]

# ---------------------------------------------------------------------------------------------------------------
# One run of one command.

def others_busy():
    """CPU seconds this machine has spent so far on anything (idle and waiting for disks left out)."""
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split(None, 9)[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def proc_kib(pid, name):
    """The `Key:  123 kB` lines of a file in /proc/PID, in bytes; empty when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return {}
    return {k: int(v) * 1024 for k, v in re.findall(r"^(\w+):\s+(\d+) kB", text, re.M)}


def watch(pid, pause):
    """Samples the memory of a running child until it ends: every millisecond at first, then with pauses of so many seconds."""
    peak = collections.Counter()
    start = time.perf_counter()
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        maps, status = proc_kib(pid, "smaps_rollup"), proc_kib(pid, "status")
        now = {"private": max(maps.get("Private_Dirty", 0), maps.get("Anonymous", 0)), "anonymous": maps.get("Anonymous", 0),
               "private_clean": maps.get("Private_Clean", 0), "rss": status.get("VmHWM", 0)}
        for key, value in now.items():
            peak[key] = max(peak[key], value)
        peak["samples"] += 1
        time.sleep(0.001 if time.perf_counter() - start < 0.25 else pause)
    return dict(peak)


def run(argv, out, sample_memory, timeout, pause=0.020):
    """Runs argv with its output in files. A timed run is left alone; a memory run is sampled and its time is not used, unless the pauses are long."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [(os.POSIX_SPAWN_OPEN, fd, f"{out}.{name}", flags, 0o600) for fd, name in ((1, "stdout"), (2, "stderr"))]
    busy, start = others_busy(), time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, dict(os.environ, LC_ALL="C"), file_actions=files)
    alarm = threading.Timer(timeout, os.kill, (pid, signal.SIGKILL))
    alarm.daemon = True
    alarm.start()
    try:
        memory = watch(pid, pause) if sample_memory else {}
        _, status, usage = os.wait4(pid, 0)
    except BaseException:  # interrupted: leave no process behind
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        alarm.cancel()
    wall = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    # The kernel counts that in ticks of 10 ms: of a short run it says nothing.
    others = max(0.0, others_busy() - busy - cpu) / wall if wall > 0.25 else None
    return {"wall": wall, "user": usage.ru_utime, "sys": usage.ru_stime, "cpu": cpu, "exit": os.waitstatus_to_exitcode(status),
            "read_from_disk": usage.ru_inblock * 512, "peak_rss": usage.ru_maxrss * 1024, "others_cores": others, **memory}


def warm(files):
    """Brings files into the page cache. Some machines clear it of whatever nobody read for a minute, so before each run."""
    block = bytearray(4 * MIB)
    for path in files:
        with open(path, "rb", buffering=0) as f:
            while f.readinto(block):
                pass


def wait_for_quiet(seconds):
    """Waits up to so long for a half second in which the rest of the machine uses less than a tenth of a core."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = others_busy()
        time.sleep(0.5)
        if others_busy() - before < 0.05:
            return

# ---------------------------------------------------------------------------------------------------------------
# All runs of one dump.

class Subject:
    """One dump in its scratch folder, with everything measured about it."""

    def __init__(self, path, tools, options):
        self.name, self.tools, self.options = path.stem, tools, options
        self.work = (options.work or path.parent) / f"bench-work-{os.getpid()}"
        self.work.mkdir()
        self.dump = self.work / path.name  # a link: the tools put their indexes beside it, not beside the real file
        try:
            os.link(path, self.dump)
        except OSError:
            self.dump.symlink_to(path.resolve())
        self.bytes, self.runs, self.index_bytes, self.checks, self.objects = path.stat().st_size, [], {}, [], None

    def argv(self, tool, command, out="out"):
        words = command.split() if isinstance(command, str) else command
        return [str(self.tools[tool])] + [w.format(dump=self.dump, out=self.work / out) for w in words]

    def index_files(self, tool):
        if tool not in INDEXES:
            return []
        pattern = INDEXES[tool].format(dump=self.dump.name, stem=self.dump.stem)
        return [f for path in self.work.glob(pattern) for f in (path.rglob("*") if path.is_dir() else [path]) if f.is_file()]

    def drop_index(self, tool):
        for path in self.index_files(tool):
            path.unlink()

    def prepare(self, case, tool):
        if CASES[case].index == "drop":
            self.drop_index(tool)
        elif tool in INDEXES and not self.index_files(tool):
            run(self.argv(tool, CASES["index"].commands[tool]), self.work / "prepare", False, self.options.timeout)

    def once(self, case, tool, sample_memory):
        self.prepare(case, tool)
        wait_for_quiet(self.options.quiet)
        warm([self.dump, self.tools[tool], *self.index_files(tool)])
        out = f"{case}-{tool}"
        result = run(self.argv(tool, CASES[case].commands[tool], out), self.work / out, sample_memory, self.options.timeout)
        result.update(dump=self.name, case=case, tool=tool, kind="memory" if sample_memory else "time")
        self.runs.append(result)
        log(f"{self.name:>6} {case:<9} {tool:<14} {result['kind']:<6} {result['wall']:8.3f} s wall {result['cpu']:8.3f} s CPU"
            + (f" {result.get('private', 0) / MIB:8.1f} MiB private" if sample_memory else "")
            + f"  others {number(result['others_cores'])} cores" + (f"  EXIT {result['exit']}" if result["exit"] else ""))
        return result

    def measure(self, case):
        """Timed rounds, the tools taking turns; a tool that has used up the budget sits out the rest. Then memory runs."""
        tools = [t for t in TOOLS if t in self.tools and t in CASES[case].commands]
        spent = dict.fromkeys(tools, 0.0)
        failed = set()
        for round_number in range(self.options.reps):
            order = tools if round_number % 2 == 0 else tools[::-1]
            for tool in order:
                if tool in failed or (round_number and spent[tool] + spent[tool] / round_number > self.options.budget):
                    continue
                result = self.once(case, tool, False)
                spent[tool] += result["wall"]
                if result["exit"]:
                    failed.add(tool)
                    log((self.work / f"{case}-{tool}.stderr").read_text(errors="replace")[-500:])
        for tool in tools if CASES[case].memory else []:
            if tool != "wc" and tool not in failed:
                for _ in range(3 if spent[tool] < self.options.budget / 2 else 1):
                    self.once(case, tool, True)
        if case == "index":
            self.index_bytes = {tool: sum(f.stat().st_size for f in self.index_files(tool)) for tool in tools}

    def close(self):
        shutil.rmtree(self.work)

# ---------------------------------------------------------------------------------------------------------------
# Do the answers agree? Not timed.

class Agreement:
    """Asks every tool the same questions about one dump and notes where two answers differ."""

    def __init__(self, subject):
        self.s = subject

    def text(self, tool, *words):
        done = subprocess.run(self.s.argv(tool, list(words), "check"), capture_output=True, text=True, errors="replace", timeout=self.s.options.timeout)
        if done.returncode not in (0, 4):  # 4: answered from a damaged dump
            raise RuntimeError(f"{tool} {' '.join(words)}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def note(self, question, ok, detail):
        self.s.checks.append({"question": question, "agrees": ok, "detail": detail})
        log(f"{self.s.name:>6} {'agrees' if ok else 'DIFFERS'}: {question}: {detail}")

    def equal(self, question, ours, theirs):
        self.note(question, ours == theirs, f"{ours:,}" if ours == theirs else f"tenure {ours:,}, peer {theirs:,}")

    def all(self):
        slurped = self.slurp() if "hprof-slurp" in self.s.tools else None
        self.s.objects = sum(slurped["records"].values()) if slurped else None
        if "tenure" not in self.s.tools:
            return
        for question in (self.counts, self.reachable, self.retained):
            try:
                question(slurped)
            except (RuntimeError, KeyError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
                self.note(question.__doc__, False, f"{type(error).__name__}: {error}")

    def slurp(self):
        """What hprof-slurp counted: records by kind (from its text) and objects by class (from its JSON)."""
        text = self.text("hprof-slurp", "{dump}", "--top", "1000000", "--json", "-o", "{out}.json")
        records = {kind: int(n) for kind, n in re.findall(r"\.\.GC ([a-z ]+ dump): (\d+)", text)}
        classes = collections.Counter()
        for row in json.loads((self.s.work / "check.json").read_text())["heap"]["top_allocated_classes"]:
            classes[row["class_name"]] += row["instance_count"]
        return {"records": records, "classes": classes}

    def counts(self, slurped):
        """objects per class, and in all"""
        if not slurped:
            return
        answer = json.loads(self.text("tenure", "histogram", "{dump}", "--no-retained", "--json", "--limit", "0"))
        ours = collections.Counter()
        for row in answer["rows"]:
            ours[row["class"]] += row["objects"]
        theirs = +slurped["classes"]
        # A class record is an object of java.lang.Class; slurp counts it as a record only.
        theirs["java.lang.Class"] += slurped["records"]["class dump"]
        self.equal("objects in the file (hprof-slurp)", answer["total"]["objects"], sum(slurped["records"].values()))
        ours = +ours
        wrong = sorted(c for c in ours.keys() | theirs.keys() if ours[c] != theirs[c])
        self.note("objects of each class (hprof-slurp)", not wrong, f"{len(ours):,} classes, {len(wrong)} differ"
                  + "".join(f"; {c}: tenure {ours[c]:,}, peer {theirs[c]:,}" for c in wrong[:5]))

    def reachable(self, _):
        """reachable objects"""
        if "hprof-analyzer" not in self.s.tools:
            return
        theirs = json.loads(self.text("hprof-analyzer", "heap", "report", "{dump}", "--section", "overview", "--json"))
        ours = json.loads(self.text("tenure", "summary", "{dump}", "--json"))
        # It counts up to nine more: the boot loader, which it makes up, and the classes of the eight kinds of primitive
        # arrays, which it always takes for roots.
        ours, theirs = ours["reachable"]["objects"], theirs["total_objects"]
        self.note("reachable objects (hprof-analyzer)", 0 <= theirs - ours <= 9, f"tenure {ours:,}, peer {theirs:,}")

    def retained(self, _):
        """what retains most"""
        if "hprof-analyzer" not in self.s.tools:
            return
        tree = json.loads(self.text("hprof-analyzer", "heap", "browse", "{dump}", "--depth", "4", "--width", "20", "--json"))
        theirs, level = [], tree["children"]
        least = max(child["retained_bytes"] for child in level) // 1000
        while level:
            theirs += [(n["retained_bytes"], n["class"]) for n in level if n["retained_bytes"] >= least]
            level = [child for n in level for child in n["children"]]
        ours = collections.Counter()
        with subprocess.Popen(self.s.argv("tenure", "dominators {dump} --tsv --all --layout mat"), stdout=subprocess.PIPE, text=True) as p:
            for line in p.stdout:
                size = int(line.rpartition("\t")[2])
                if size >= least:
                    ours[size] += 1
        if p.returncode:
            raise RuntimeError(f"tenure dominators: exit {p.returncode}")
        missing = []
        for size, name in sorted(theirs, reverse=True):
            if ours[size]:
                ours[size] -= 1
            else:
                missing.append(f"{name} {size:,}")
        # hprof-analyzer, like MAT, lets a thread own what its frames hold; to tenure each such object is a root.
        unexplained = [m for m in missing if "Thread" not in m]
        self.note("largest retained sizes, layout of MAT (hprof-analyzer)", not unexplained,
                  f"{len(theirs)} objects of at least {least:,} bytes, {len(missing)} without an equal: " + ("; ".join(missing[:6]) or "none"))

# ---------------------------------------------------------------------------------------------------------------
# From runs to figures, from figures to text.

def summarize(results):
    """{(dump, case, tool): figures}: medians of the timed runs, maxima of the memory runs."""
    groups = collections.defaultdict(lambda: {"time": [], "memory": []})
    for r in results["runs"]:
        groups[r["dump"], r["case"], r["tool"]][r["kind"]].append(r)
    figures = {}
    for key, group in groups.items():
        timed, sampled = [r for r in group["time"] if r["exit"] in (0, 4)], group["memory"]
        if not timed:
            continue
        dump = results["dumps"][key[0]]
        f = {q: statistics.median(r[q] for r in timed) for q in ("wall", "cpu")}
        f.update(runs=len(timed), wall_min=min(r["wall"] for r in timed), wall_max=max(r["wall"] for r in timed),
                 cold=statistics.median(r["read_from_disk"] for r in timed) > dump["bytes"] / 100,
                 others=max((r["others_cores"] for r in timed if r["others_cores"] is not None), default=None))
        if sampled:
            # A run of a few milliseconds may end before the first sample.
            f.update(private=max(r.get("private", 0) for r in sampled), rss=max(r.get("rss", 0) for r in sampled))
        index = dump["index_bytes"].get(key[2]) if key[1] == "index" else None
        if index is not None:
            f["index_bytes"] = index
        if dump["objects"]:
            f.update({f"{q}_per_object": f[n] / dump["objects"] for q, n in (("private", "private"), ("index", "index_bytes")) if n in f})
        figures[key] = f
    return figures


def judge(results):
    """One line per goal and dump: (goal, dump, measured, verdict)."""
    figures, lines = summarize(results), []
    for goal in GOALS:
        for dump, facts in results["dumps"].items():
            ours = figures.get((dump, goal.case, "tenure"), {}).get(goal.figure)
            if goal.largest and facts["bytes"] > goal.largest:
                continue
            if goal.peer and ours is not None:
                theirs = figures.get((dump, goal.case, goal.peer), {}).get(goal.figure)
                ours = ours / theirs if theirs else None
            lines.append((goal, dump, ours, "not measured" if ours is None else "met" if ours <= goal.limit else "MISSED"))
    return lines


def number(x, digits=3):
    """Three significant digits, never an exponent."""
    if x is None:
        return "-"
    magnitude = math.floor(math.log10(abs(x))) if abs(x) > 1e-6 else 0
    return f"{x:,.{max(0, digits - 1 - magnitude)}f}"


def quantity(x, unit):
    if x is None:
        return "-"
    return f"{number(x / MIB)} MiB" if unit == "bytes" and x >= MIB else f"{number(x)} {unit}"


def table(head, rows):
    align = ["---" if i < 2 else "---:" for i in range(len(head))]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [head, align, *rows])


def render(results):
    figures, m = summarize(results), results["machine"]
    text = [f"# Bench of {results['date']}", "", f"{m['cores']} cores ({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}, huge pages {m['huge_pages']}; "
            + ", ".join(f"{t} {v}" for t, v in results["versions"].items()) + ".", ""]
    text += [results["note"], ""] if results.get("note") else []
    text += ["Ratios are tenure / tool, medians of the same run. *others* is the most that the rest of the machine used during one of the runs, in cores. "
             "*private* is the sampled peak of max(Private_Dirty, Anonymous).", ""]
    for dump, facts in results["dumps"].items():
        objects = f", {facts['objects']:,} objects" if facts["objects"] else ""
        text += [f"## {dump}: {facts['bytes']:,} bytes{objects}", ""]
        rows = []
        for name, case in CASES.items():
            ours = figures.get((dump, name, "tenure"), {})
            for tool in TOOLS:
                f = figures.get((dump, name, tool))
                if not f:
                    continue
                ratios = [number(ours[q] / f[q]) if tool != "tenure" and ours.get(q) and f.get(q) else "" for q in ("wall", "cpu", "private")]
                rows.append([name, tool + (" (cold)" if f["cold"] else ""), f["runs"], number(f["wall"]), f"{number(f['wall_min'])}-{number(f['wall_max'])}", number(f["cpu"]),
                             *[number(f[q] / MIB) if q in f else "" for q in ("private", "rss")],
                             number(f["private_per_object"]) if "private_per_object" in f else "", *ratios, number(f["others"])])
        text += [table(["case", "tool", "runs", "wall s", "min-max", "CPU s", "private MiB", "peak RSS MiB", "private B/object", "wall ratio", "CPU ratio", "private ratio", "others"], rows), ""]
        sizes = [f"{t} {number(b / MIB)} MiB" + (f" = {number(b / facts['objects'])} B/object" if facts["objects"] else "") for t, b in facts["index_bytes"].items()]
        text += ["Index on disk: " + "; ".join(sizes) + ".", ""] if sizes else []
        checks = [f"* {'agrees' if c['agrees'] else '**differs**'}: {c['question']}: {c['detail']}" for c in facts["checks"]]
        text += checks + [""] if checks else []
    if "tenure" in results["versions"]:
        text += ["## Goals", "", table(["goal", "dump", "measured", "at most", "verdict"],
                 [(g.text, d, quantity(x, g.unit.replace("the peer", g.peer or "")), quantity(g.limit, g.unit.replace("the peer", g.peer or "")), v) for g, d, x, v in judge(results)]), ""]
    text += ["## What was run", ""]
    for name, case in CASES.items():
        commands = {t: c if isinstance(c, str) else shlex.join(c) for t, c in case.commands.items()}
        text.append(f"* {name}, {case.title}: " + "; ".join(f"`{t} {c}`" for t, c in commands.items()))
    return "\n".join(text) + "\n"

# ---------------------------------------------------------------------------------------------------------------
# Finding the tools, the dumps and the machine.

def log(line):
    print(line, file=sys.stderr, flush=True)


def find_tools(options):
    tools = {}
    for name in TOOLS:
        path = shutil.which(name, path=str(options.peers / "bin") + os.pathsep + str(options.peers)) if options.peers else None
        path = path or shutil.which(name)
        if name == "tenure":
            path = None if options.no_tenure else options.tenure or build_tenure()
        if path and (not options.tools or name in options.tools):
            tools[name] = Path(path).absolute()
        else:
            log(f"without {name}")
    return tools


def build_tenure():
    subprocess.run(["cargo", "build", "--release", "--bin", "tenure"], cwd=REPO, check=True)
    meta = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=REPO, check=True, capture_output=True, text=True)
    return Path(json.loads(meta.stdout)["target_directory"]) / "release" / "tenure"


def version(tool, path):
    first = subprocess.run([path, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]
    return re.sub(rf"^{tool}\s+(\(.*\)\s*)?", "", first)


def machine():
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    huge = re.search(r"\[(\w+)\]", Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text())
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1])
    return {"cpu": cpu[1].strip() if cpu else platform.machine(), "cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory / MIB),
            "kernel": platform.release().partition("-")[0], "huge_pages": huge[1] if huge else "unknown"}


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0], epilog="example: bench/run.py --peers ~/peers --reps 5 --save heap.hprof")
    p.add_argument("dumps", nargs="*", type=Path, metavar="DUMP", help="heap dumps (default: all in --dump-dir)")
    p.add_argument("--dump-dir", type=Path, default=BENCH / "target/dumps", help="where --make puts dumps (default: bench/target/dumps)")
    p.add_argument("--make", nargs="+", default=[], metavar="NAME", help="make these dumps first if they are not there: d50 d500 d2g d6g")
    p.add_argument("--peers", type=Path, help="folder with the peers' programs, or with a bin/ that holds them (else PATH)")
    p.add_argument("--tenure", type=Path, help="this tenure instead of building the release one")
    p.add_argument("--no-tenure", action="store_true", help="measure the peers alone")
    p.add_argument("--tools", nargs="+", choices=TOOLS, help="only these")
    p.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="only these")
    p.add_argument("--reps", type=int, default=5, help="timed rounds (default 5)")
    p.add_argument("--budget", type=float, default=60, help="a tool stops repeating a case after so many seconds (default 60; one run is always made)")
    p.add_argument("--timeout", type=float, default=3600, help="seconds after which one run is ended")
    p.add_argument("--quiet", type=float, default=5, help="before each run wait so many seconds at most for the rest of the machine to be quiet (default 5)")
    p.add_argument("--no-check", action="store_true", help="do not compare the answers")
    p.add_argument("--work", type=Path, help="scratch folder (default: beside each dump, removed afterwards)")
    p.add_argument("--note", default="", help="a sentence to keep with the results")
    p.add_argument("--save", action="store_true", help="write bench/results/DATE-MACHINE.json and .md")
    p.add_argument("--render", type=Path, metavar="JSON", help="print the tables of an earlier run and stop")
    return p.parse_args()


def save(results, text, kind=""):
    """Keeps the runs and the tables made of them; `kind` goes into the names of the files."""
    m = results["machine"]
    label = re.sub(r"[^a-z0-9]+", "-", f"{m['cores']}x-{m['cpu']}-{m['memory_gib']}g".lower()).strip("-")
    stem, n = BENCH / "results" / f"{results['date']}-{kind}{label}", 1
    while stem.with_suffix(".json").exists():
        n += 1
        stem = stem.with_name(f"{results['date']}-{kind}{label}-{n}")
    stem.parent.mkdir(exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    stem.with_suffix(".md").write_text(text)
    log(f"kept {stem.relative_to(REPO)}.json and .md")


def arguments_of_runs(p, kind):
    """Arguments of programs whose runs can be kept, added to and printed again."""
    p.add_argument("--agent", type=Path, help="this libhprof.so instead of building the release one")
    p.add_argument("--reps", type=int, default=3, help="rounds (default 3)")
    p.add_argument("--quiet", type=float, default=5, help="before each run wait so many seconds at most for the rest of the machine to be quiet (default 5)")
    p.add_argument("--note", default="", help="a sentence to keep with the results")
    p.add_argument("--save", action="store_true", help=f"write bench/results/DATE-{kind}-MACHINE.json and .md")
    p.add_argument("--into", type=Path, metavar="JSON", help="add the runs to those of an earlier run, and write its .json and .md again")
    p.add_argument("--render", type=Path, metavar="JSON", help="print the tables of an earlier run and stop")


def keep_runs(options, render, kind, runs, earlier, **facts):
    """Prints the runs, with those of an earlier run, and keeps them as the options say."""
    results = {"date": datetime.date.today().isoformat(), "machine": machine(), "note": options.note or (earlier or {}).get("note", ""), **facts,
               "runs": (earlier or {"runs": []})["runs"] + runs}
    print(render(results))
    if options.into:
        options.into.write_text(json.dumps(results, indent=1) + "\n")
        options.into.with_suffix(".md").write_text(render(results))
    elif options.save:
        save(results, render(results), f"{kind}-")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_arguments()
    if options.render:
        print(render(json.loads(options.render.read_text())))
        return
    if options.make:
        subprocess.run([BENCH / "dumps" / "make.sh", options.dump_dir, *options.make], check=True)
    dumps = options.dumps or sorted(options.dump_dir.glob("*.hprof"), key=lambda p: p.stat().st_size)
    if not dumps:
        sys.exit("no dumps: name some, or make them with --make d50")
    tools = find_tools(options)
    results = {"date": datetime.date.today().isoformat(), "machine": machine(), "note": options.note,
               "versions": {t: version(t, p) for t, p in tools.items() if t != "wc"}, "dumps": {}, "runs": []}
    for path in dumps:
        subject = Subject(path, tools, options)
        try:
            for case in options.cases:
                subject.measure(case)
            if not options.no_check:
                Agreement(subject).all()
        finally:
            subject.close()
        results["dumps"][subject.name] = {"bytes": subject.bytes, "objects": subject.objects, "index_bytes": subject.index_bytes, "checks": subject.checks}
        results["runs"] += subject.runs
    print(render(results))
    if options.save:
        save(results, render(results))
    if not all(check["agrees"] for facts in results["dumps"].values() for check in facts["checks"]):
        sys.exit("some answers differ")


if __name__ == "__main__":
    main()
