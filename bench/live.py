#!/usr/bin/env python3
"""Truth and cost of the live page, on a program with known populations.

  bench/live.py coverage   95 % intervals of sampled live counts: how many hold the truth (20 runs)
  bench/live.py memory     native memory of 1,000,000 tracked instances, and the time of the class page
  bench/live.py cost       what an open page costs a busy program, in work per second of its CPU time
  bench/live.py off        what an agent costs that counts nothing: after `stop`, and with all classes off
  bench/live.py native     what native=SIZE costs a program that allocates natively
  bench/live.py traffic    500 requests a second on the page while the program works

With --tenure PATH, --agent PATH, --java HOME, --runs N. A round prints its figures; the last line sums up.
"""
import argparse, json, os, re, signal, statistics, subprocess, sys, tempfile, threading, time, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))


class Program:
    """A program under `tenure run --live`, or alone."""

    def __init__(self, args, classes, flags=None, heap="400m", agent=None, more=()):
        java = [os.path.join(args.java, "bin/java"), f"-Xmx{heap}", f"-Xms{heap}", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", *more]
        if agent:
            java.append(f"-agentpath:{args.agent}={agent}")
        java += ["-cp", classes, "Census"]
        self.folder = tempfile.TemporaryDirectory()
        live = [args.tenure, "run", "--live", "--no-browser", "--dumps", self.folder.name] + (flags or []) + ["--"]
        self.child = subprocess.Popen((live if flags is not None else []) + java, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, cwd=self.folder.name,
                                      env={**os.environ, "TENURE_AGENT": args.agent})
        self.url = None
        if flags is not None:
            for line in self.child.stderr:
                found = re.search(r"live page is (http://\S+)", line)
                if found:
                    self.url = found.group(1)
                    break
        threading.Thread(target=lambda: [None for _ in self.child.stderr], daemon=True).start()
        self.answer("ready")
        self.pid = self.json("state")["pid"] if self.url else self.child.pid

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.answer("census", "ok", "work", "sum")

    def answer(self, *words):
        """The next line that begins with one of these: the VM may print its threads on the same stream."""
        for line in self.child.stdout:
            found = line.split()
            if found and found[0] in words:
                return found
        raise SystemExit("the program has ended")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return answer.read()

    def json(self, path):
        return json.loads(self.get("api/v1/" + path))

    def command(self, path):
        urllib.request.urlopen(urllib.request.Request(self.url + "api/v1/commands/" + path, method="POST"), timeout=120).read()

    def until(self, wanted):
        while not wanted(self.json("state")):
            time.sleep(0.1)

    def snapshot(self):
        """Waits for a table of sites that was asked for after this call."""
        count = lambda state: (state.get("recording") or {}).get("snapshots", 0)
        before = count(self.json("state"))
        self.until(lambda state: count(state) >= before + 2)

    def native_kib(self):
        """Resident memory that is not the (touched, constant) heap."""
        with open(f"/proc/{self.pid}/smaps_rollup") as file:
            return int(re.search(r"^Rss:\s+(\d+)", file.read(), re.M).group(1))

    def served_seconds(self):
        """CPU of the thread that answers who asks from outside."""
        spent = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            try:
                with open(f"/proc/{self.pid}/task/{task}/comm") as name, open(f"/proc/{self.pid}/task/{task}/schedstat") as times:
                    if name.read().strip() == "Attach Listener":
                        spent += int(times.read().split()[0])
            except OSError:
                pass  # It has ended.
        return spent / 1e9

    def cpu_seconds(self):
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.child.kill()
        self.child.wait()
        if self.pid != self.child.pid:
            try:
                os.kill(self.pid, 9)
            except ProcessLookupError:
                pass


def coverage(args, classes):
    held = all_intervals = absent = 0
    for run in range(args.runs):
        program = Program(args, classes, ["--record", "sampled"])
        program.until(lambda state: (state.get("recording") or {}).get("connected"))
        truth = dict(word.split("=") for word in program.tell("census")[1:])
        program.snapshot()
        rows = {row["class"]: row for row in program.json("classes?source=recording&filter=Census$&limit=1000")["rows"]}
        here = 0
        for name, count in truth.items():
            all_intervals += 1
            row = rows.get(name)
            if not row or not row["live_interval"]:
                absent += 1
                continue
            low, high = row["live_interval"]
            here += low <= int(count) <= high
            if not low <= int(count) <= high:
                print(f"  {name}: {count} is not in {low} to {high} (estimate {row['live']})")
        held += here
        print(f"run {run + 1}: {here} of {len(truth)} intervals hold the truth", flush=True)
        program.end()
    share = 100 * held / all_intervals
    print(f"coverage: {held} of {all_intervals} = {share:.1f} % (wanted: 93 %), {absent} classes without a sample")


def memory(args, classes):
    def grown(flags):
        program = Program(args, classes, flags)
        if "--record" in flags:
            program.until(lambda state: (state.get("recording") or {}).get("connected"))
            program.tell("keep 1000")
            program.snapshot()
        program.tell("keep 1000")
        before = program.native_kib()
        program.tell("keep 1000000")
        if "--record" in flags:
            program.command("gc")
            program.snapshot()
        after = program.native_kib()
        times = []
        if "--record" in flags:
            for _ in range(20):
                begun = time.perf_counter()
                program.get("api/v1/classes?source=recording")
                times.append(1000 * (time.perf_counter() - begun))
            row = program.json("classes?source=recording&filter=Census$Small")["rows"][0]
            assert row["live"] >= 1_000_000, row
        program.end()
        return (after - before) / 1024, times

    plain = [grown([])[0] for _ in range(3)]
    tracked, times = zip(*[grown(["--record", "full"]) for _ in range(3)])
    cost = statistics.median(tracked) - statistics.median(plain)
    page = statistics.median(sum(map(list, times), []))
    print(f"memory: {cost:.1f} MiB for 1,000,000 tracked instances (wanted: 40 MB); tracked {tracked}, plain {plain}")
    print(f"class page: median {page:.1f} ms, longest {max(map(max, times)):.1f} ms (wanted: 200 ms)")


def rate(program, ms=3000):
    """Work per second of the whole process's CPU time."""
    before = program.cpu_seconds()
    _, rounds, _ = program.tell(f"work {ms}")
    return int(rounds) / (program.cpu_seconds() - before)


def cost(args, classes):
    """One program; its server is stopped and goes on in turn, so that all else is the same. That difference is noisy, so
    the CPU of the thread that answers the server is said, too: it is all that the page asks of a program without a recording."""
    ratios = []
    for run in range(args.runs):
        program = Program(args, classes, [], more=["-XX:NativeMemoryTracking=summary"])
        rate(program, 8000)
        done = threading.Event()

        def follow():
            with urllib.request.urlopen(program.url + "api/v1/events", timeout=120) as stream:
                while not done.is_set() and stream.readline():
                    pass

        threading.Thread(target=follow, daemon=True).start()
        served, spent = program.served_seconds(), program.cpu_seconds()
        rate(program, 10000)
        served, spent = program.served_seconds() - served, program.cpu_seconds() - spent
        print(f"run {run + 1}: {1000 * served:.1f} ms of {spent:.1f} s of CPU answer the page: {100 * served / spent:.2f} %", flush=True)
        for turn in range(8):
            rates = {}
            for is_open in ([True, False] if turn % 2 else [False, True]):
                program.child.send_signal(signal.SIGCONT if is_open else signal.SIGSTOP)
                rates[is_open] = rate(program, 2000)
            ratios.append(1 - rates[True] / rates[False])
        done.set()
        program.child.send_signal(signal.SIGCONT)
        program.end()
        print(f"run {run + 1}: {100 * statistics.median(ratios[-8:]):+.2f} %", flush=True)
    print(f"cost of the open page: median {100 * statistics.median(ratios):+.2f} % of the program's CPU, "
          f"standard error {100 * statistics.stdev(ratios) / len(ratios) ** 0.5:.2f} (wanted: 3 %)")


def off(args, classes):
    """Three programs side by side, each in turn: without an agent, with one that was stopped, with one for which all classes are off."""
    ratios = {"stopped": [], "all classes off": []}
    for run in range(args.runs):
        programs = {"none": Program(args, classes)}
        for name in ratios:
            programs[name] = Program(args, classes, ["--record", "full"])
            programs[name].until(lambda state: state["recording"] and state["recording"]["connected"])
        programs["stopped"].command("stop")
        programs["all classes off"].command("options?text=" + urllib.request.quote("* ** off"))
        for program in programs.values():
            rate(program, 6000)
        for turn in range(6):
            names = list(programs) if turn % 2 else list(reversed(programs))
            rates = {name: rate(programs[name], 2000) for name in names}
            for name in ratios:
                ratios[name].append(rates["none"] / rates[name] - 1)
        for program in programs.values():
            program.end()
    for name, list_ in ratios.items():
        print(f"{name}: median {100 * statistics.median(list_):+.1f} % of the program's CPU, "
              f"from {100 * min(list_):+.1f} to {100 * max(list_):+.1f}, load {os.getloadavg()[0]:.0f}")


def native(args, classes):
    for options in ("native=512k,doe=n", "native=64k,doe=n"):
        ratios = []
        for run in range(args.runs):
            plain, hooked = Program(args, classes), Program(args, classes, agent=options)
            for program in (plain, hooked):
                rate(program, 4000)
            ratios += [1 - rate(hooked) / rate(plain) for _ in range(5)]
            plain.end()
            hooked.end()
        print(f"{options}: median {100 * statistics.median(ratios):+.2f} % of the program's CPU")


def traffic(args, classes):
    program = Program(args, classes, ["--record", "sampled"])
    program.until(lambda state: (state.get("recording") or {}).get("connected"))
    program.tell("census")
    program.snapshot()
    views = ["state", "timeline?points=200", "classes?source=recording", "allocations?by=site", "stacks"]
    done, slow = [], []

    def ask(worker):
        begun = time.perf_counter()
        for n in range(250):
            due = begun + n / 50
            time.sleep(max(0, due - time.perf_counter()))
            started = time.perf_counter()
            program.json(views[(n + worker) % len(views)])
            slow.append(time.perf_counter() - started)
            done.append(1)

    begun = time.perf_counter()
    workers = [threading.Thread(target=ask, args=(n,)) for n in range(10)]
    for worker in workers:
        worker.start()
    _, rounds, _ = program.tell("work 3000")
    for worker in workers:
        worker.join()
    spent = time.perf_counter() - begun
    print(f"traffic: {len(done)} requests in {spent:.1f} s, median {1000 * statistics.median(slow):.1f} ms, longest {1000 * max(slow):.0f} ms; "
          f"the program did {rounds} rounds meanwhile")
    program.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["coverage", "memory", "cost", "off", "native", "traffic"])
    parser.add_argument("--tenure", default=os.path.join(HERE, "../target/release/tenure"))
    parser.add_argument("--agent", default=os.path.join(HERE, "../target/release/libhprof.so"))
    parser.add_argument("--java", default=os.environ.get("JAVA_HOME", ""))
    parser.add_argument("--runs", type=int, default=0)
    args = parser.parse_args()
    args.runs = args.runs or {"coverage": 20}.get(args.what, 3)
    args.tenure, args.agent = os.path.abspath(args.tenure), os.path.abspath(args.agent)
    print("load", os.getloadavg(), "java", args.java)
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run([os.path.join(args.java, "bin/javac"), "-d", classes, os.path.join(HERE, "live/Census.java")], check=True)
        globals()[args.what](args, classes)
    print("load", os.getloadavg())


if __name__ == "__main__":
    main()
