#!/usr/bin/env python3
"""Opens the JFR recordings that Tenure writes with JDK Mission Control, and compares what it reads with what Tenure says.

    bench/jmc.py [--java HOME] [--tenure FILE] [--agent FILE] [--keep FOLDER]

JMC's own parser, attributes, aggregators and rules are on Maven Central (org.openjdk.jmc); mvn fetches them into bench/target/jmc, and
their SHA-256 must be those below. Each door that writes JFR is opened: `tenure convert`, `api/v1/profile?form=jfr` of the live page
(Java and native memory), and the recording that is kept when a program has ended. Exit code 1 when a number differs or a rule fails.
"""
import argparse, collections, hashlib, json, os, pathlib, re, subprocess, sys, tempfile, threading, time, urllib.request

HERE = pathlib.Path(__file__).resolve().parent
MAIN = "org.openjdk.jmc:flightrecorder.rules.jdk:9.1.1"
JARS = {
    "common-9.1.1.jar": "0bb5224383e09321ff0304e2c40a9b5ec818cfe46c0d49fa5ee80e4c351f9fab",
    "encoder-1.2.3.jar": "b09e2cd5c36a7127e091df9be628278b1166b40bc08b9de8196ccddb0cccd67f",
    "flightrecorder-9.1.1.jar": "43f3fdfb64605f2217d1a60cc442ed9507e4c4f5bc31cf8b4ffedc68d1be2b84",
    "flightrecorder.rules-9.1.1.jar": "0ba3dc69ca78247681801c6ab1c8ff50f7cf40abec855f5e5d4b454044e84466",
    "flightrecorder.rules.jdk-9.1.1.jar": "537277239cc64172513807b564da42b3631b4b9fe2ea4658adfaa9e3c7b47ed6",
    "lz4-java-1.8.0.jar": "d74a3334fb35195009b338a951f918203d6bbca3d1d359033dc33edd1cadc9ef",
}
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>jmc</groupId><artifactId>jmc</artifactId><version>1</version>
<dependencies><dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency></dependencies></project>"""


def fetch():
    """The jars, fetched once and checked each time."""
    folder = HERE / "target/jmc"
    if not all((folder / name).is_file() for name in JARS):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(POM.format(*MAIN.split(":")))
        command = ["mvn", "-q", "-B", "-f", folder / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        subprocess.run(command, check=True)
    for name, expected in JARS.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if found != expected:
            sys.exit(f"{name}: SHA-256 is {found}, expected {expected}")
    return os.pathsep.join(str(folder / name) for name in JARS)


class Checks:
    """What JMC reads, beside what is expected."""

    def __init__(self, java, classpath, keep):
        self.java, self.classpath, self.keep, self.wrong = java, classpath, keep, 0

    def read(self, door, path):
        """All that JMC says of a recording: {what: {name: number}}."""
        if self.keep:
            (pathlib.Path(self.keep) / f"{door}.jfr").write_bytes(path.read_bytes())
        done = subprocess.run([self.java / "bin/java", "-cp", self.classpath, "Jmc", path], capture_output=True, encoding="utf-8")
        if done.returncode != 0:
            print(f"{door}: JMC cannot read it\n{done.stderr}")
            self.wrong += 1
        said = collections.defaultdict(dict)
        for line in done.stdout.splitlines():
            what, name, number = line.split("\t")
            said[what][name] = int(number)
        print(f"{door}: {path.stat().st_size} bytes; " + ", ".join(f"{count} {name}" for name, count in said["type"].items()))
        for rule in said["rule"]:
            print(f"  rule {rule}")
        for failed in [*said["failed"], *done.stderr.splitlines()]:
            print(f"  WRONG: {failed}")
            self.wrong += 1
        print("  rules: " + ", ".join(f"{count} {name}" for name, count in said["severity"].items()))
        return said

    def same(self, what, jmc, expected):
        """Both are {name: number}; zeros count as absent."""
        jmc, expected = ({name: n for name, n in side.items() if n} for side in (jmc, expected))
        differ = [name for name in jmc.keys() | expected.keys() if jmc.get(name) != expected.get(name)]
        total = f"{len(expected)} rows, sum {sum(expected.values())}"
        if differ or not expected:
            self.wrong += 1
            print(f"  WRONG: {what}: {len(differ)} differ of {total}")
            for name in differ[:5]:
                print(f"    {name}: JMC {jmc.get(name)}, Tenure {expected.get(name)}")
        else:
            print(f"  same: {what}: {total}")


def sums(rows, key, value):
    total = collections.Counter()
    for row in rows:
        total[key(row)] += value(row)
    return dict(total)


def method(stack):
    """`a.B.c(B.java:3)` to `a.B.c`; nothing of no stack."""
    return stack[0].split("(")[0] if stack else ""


def package(stack):
    return method(stack).split("/")[0].rpartition(".")[0].rpartition(".")[0]


class Program:
    """shop.Mixed under a command, told to go once."""

    def __init__(self, command, folder, environment):
        self.child = subprocess.Popen([*map(str, command)], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, env={**os.environ, **environment})
        self.url = None

    def page(self):
        for line in self.child.stderr:
            found = re.search(r"live page is (http://\S+)", line)
            if found:
                self.url = found.group(1)
                break
        threading.Thread(target=self.child.stderr.read, daemon=True).start()

    def go(self):
        self.child.stdin.write("go\n")
        self.child.stdin.flush()
        self.hears("ok")

    def hears(self, word):
        for line in self.child.stdout:
            if line.strip() == word:
                return
        sys.exit("the program has ended")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return answer.read()

    def json(self, path):
        return json.loads(self.get("api/v1/" + path))

    def until(self, wanted):
        while not wanted(self.json("state")["recording"] or collections.defaultdict(int)):
            time.sleep(0.1)

    def snapshot(self):
        before = self.json("state")["recording"]["snapshots"]
        self.until(lambda recording: recording["snapshots"] >= before + 2)

    def end(self):
        """At the end of its input it ends by itself."""
        self.child.stdin.close()
        self.child.wait(timeout=120)


def convert(args, checks, classes, folder):
    """A profile in the text form, as the agent writes it at the end."""
    agent = f"-agentpath:{args.agent}=heap=sites,cpu=samples,monitor=y,cutoff=0,depth=8,thread=y,lineno=n,file=p.txt"
    program = Program([args.java / "bin/java", agent, "-Xmx200m", "-cp", classes, "shop.Mixed"], folder, {})
    program.hears("ready")
    program.go()
    program.end()
    tenure = [args.tenure, "convert", "p.txt"]
    subprocess.run([*tenure, "-o", "p.jfr"], cwd=folder, check=True)
    said = checks.read("convert", folder / "p.jfr")

    def collapsed(metric):
        done = subprocess.run([*tenure, "-o", "-", "--to", "collapsed", "--metric", metric], cwd=folder, check=True, capture_output=True, text=True)
        rows = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        return [(stack.split(";"), int(number)) for stack, number in rows]

    # The allocated class stands behind its stack.
    sites = collapsed("alloc_space")
    is_class = lambda frame: frame.endswith("]") and frame.startswith("[")
    name = lambda frame: frame[1:-1] if is_class(frame) else frame
    checks.same("allocated bytes by class", said["class"], sums(sites, lambda row: name(row[0][-1]), lambda row: row[1]))
    top = lambda row: row[0][-2] if len(row[0]) > 1 else ""
    checks.same("allocated bytes by method", said["method"], sums(sites, top, lambda row: row[1]))
    live = collapsed("inuse_space")
    checks.same("live bytes by class", said["old_bytes"], sums(live, lambda row: name(row[0][-1]), lambda row: row[1]))
    live = collapsed("inuse_objects")
    checks.same("live objects by class", said["old_objects"], sums(live, lambda row: name(row[0][-1]), lambda row: row[1]))
    checks.same("CPU samples by method", said["samples"], sums(collapsed("samples"), lambda row: row[0][-1], lambda row: row[1]))
    blocked = sum(row[1] for row in collapsed("delay")) // 1000
    # Each wait has the mean of its stack in whole nanoseconds.
    near = abs(said["blocked_us"].get("", 0) - blocked) <= 1 + blocked // 1_000_000
    checks.same("microseconds blocked", said["blocked_us"] if not near else {"": blocked}, {"": blocked})
    print("  threads: " + ", ".join(sorted(said["thread"])))


def live(args, checks, classes, folder):
    """The live page: a range, native memory, and what is kept at the end."""
    watch = [args.tenure, "run", "--live", "--no-browser", "--record", "full", "--native", "1", "--dumps", folder / "kept"]
    java = [args.java / "bin/java", "-Xmx200m", "-cp", classes, "shop.Mixed"]
    program = Program([*watch, "--", *java], folder, {"TENURE_AGENT": str(args.agent)})
    program.page()
    program.hears("ready")
    program.until(lambda recording: recording["counting"])
    begun = int(1000 * time.time())
    program.go()
    program.snapshot()
    now = int(1000 * time.time())

    def recording(door, query):
        path = folder / f"{door}.jfr"
        path.write_bytes(program.get(f"api/v1/profile?form=jfr&{query}"))
        return checks.read(door, path)

    for door, query in [("live", f"to={now}"), ("live-range", f"from={begun}&to={now}&filter=shop")]:
        said = recording(door, query)
        rows = program.json(f"allocations?by=site&limit=1000000&{query}")["rows"]
        for name, key in [("class", lambda row: row["name"]), ("method", lambda row: method(row.get("stack", []))),
                          ("package", lambda row: package(row.get("stack", [])))]:
            checks.same(f"allocated bytes by {name}", said[name], sums(rows, key, lambda row: row["allocated_bytes"]))
        remaining = [row for row in rows if row["remaining"] > 0]
        checks.same("live objects by class", said["old_objects"], sums(remaining, lambda row: row["name"], lambda row: row["remaining"]))
        checks.same("live bytes by class", said["old_bytes"], sums(remaining, lambda row: row["name"], lambda row: row["remaining_bytes"]))
        inside = begun - 60_000 <= said["time"]["first"] <= said["time"]["last"] <= now
        checks.same("all events in the time of the range", {"": int(inside)}, {"": 1})
    said = recording("live-native", f"to={now}&heap=native")
    total = program.json(f"allocations?by=site&heap=native&to={now}")["total"]
    checks.same("native bytes allocated", said["native_allocated"], {"": total["allocated_bytes"]})
    checks.same("native bytes remaining", said["native_remaining"], {"": total["remaining_bytes"]})
    program.end()
    kept, = (folder / "kept").glob("*-recording-1.jfr")
    said = checks.read("kept", kept)
    table, = (folder / "kept").glob("*-classes-1.json")
    rows = json.loads(table.read_text())["rows"]
    checks.same("live objects by class", said["old_objects"], sums(rows, lambda row: row["class"], lambda row: row["live"]))
    checks.same("live bytes by class", said["old_bytes"], sums(rows, lambda row: row["class"], lambda row: row["live_bytes"]))
    print("  packages: " + ", ".join(sorted(said["package"])[:12]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenure", default=HERE / "../target/release/tenure", type=pathlib.Path)
    parser.add_argument("--agent", default=HERE / "../target/release/libhprof.so", type=pathlib.Path)
    parser.add_argument("--java", default=os.environ.get("JAVA_HOME", ""), type=pathlib.Path, help="a JDK of version 17 or later")
    parser.add_argument("--keep", help="folder to copy the recordings to, to look at them in JMC itself")
    args = parser.parse_args()
    args.tenure, args.agent = args.tenure.resolve(), args.agent.resolve()
    jars = fetch()
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        classes, folder = scratch / "classes", scratch / "out"
        folder.mkdir()
        subprocess.run([args.java / "bin/javac", "-cp", jars, "-d", classes, *(HERE / "jmc").glob("*.java")], check=True)
        checks = Checks(args.java, f"{jars}{os.pathsep}{classes}", args.keep)
        convert(args, checks, classes, folder)
        live(args, checks, classes, folder)
    print(f"{checks.wrong} wrong" if checks.wrong else "JMC reads what Tenure says")
    sys.exit(checks.wrong > 0)


if __name__ == "__main__":
    main()
