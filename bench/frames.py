#!/usr/bin/env python3
"""Whether CPU samples with native and kernel frames show what async-profiler shows of the same program.

    bench/frames.py --peers ~/peers --jdks JDK17 JDK25            print the tables
    bench/frames.py --peers ~/peers --jdks JDK17 JDK25 --save     keep them in bench/results/

Python 3.9 or newer, standard library only, Linux, a C compiler. README.md says what each figure means.
"""
import argparse, collections, datetime, os, re, subprocess, sys, tempfile
from pathlib import Path

from agent import find_libraries, jdk_name
from run import REPO, log, machine, save, table

TESTS = REPO / "crates" / "agent" / "tests"
PROGRAMS = {
    "spin: a JNI library": ["InNative", "{spun}"],
    "deflate: java.util.zip.Deflater": ["InNative", "deflate"],
    "kernel: reading /dev/zero": ["InNative", "kernel"],
    "calls: direct and interface calls": ["Calls"],
    "gc: System.gc() on 20 MB": ["Collected"],
}
# Stubs of the VM, which async-profiler shows as frames and the agent counts for the method that called them.
STUB = re.compile(r"^(itable stub|vtable stub|InlineCacheBuffer|I2C/C2I adapters|StubRoutines.*|[a-z_]*arraycopy\w*|\w+_fill)$")
OURS, THEIRS = "tenure", "async-profiler"
TOOLS = {
    OURS: "-agentpath:{agent}=cpu=samples,interval=1,depth=64,cutoff=0,verbose=n,frames=kernel,file={out}",
    THEIRS: "-agentpath:{async}=start,event=cpu,interval=1ms,collapsed,lib,file={out}",
}


# Two names of one function.
ALIAS = re.compile("^__memcpy_")
# A library's file may have a longer name than the link by which it was loaded.
LONG = re.compile(r"(\.so\.\d+)[\d.]*")


def of_agent(text):
    """{stack: samples} of the text form; a stack is a tuple of frames, innermost first."""
    name = lambda line: re.sub(r"\.\+0x[0-9a-f]+$", ".(no name)", line.strip().rpartition("(")[0])
    traces = {number: tuple(name(line) for line in frames.splitlines())
              for number, frames in re.findall(r"^TRACE (\d+):.*\n((?:\t.*\n)*)", text, re.M)}
    stacks = collections.Counter()
    for count, trace in re.findall(r"^ *\d+ +[\d.]+% +[\d.]+% +(\d+) (\d+) ", text.partition("CPU SAMPLES BEGIN")[2], re.M):
        stacks[traces[trace]] += int(count)
    return stacks


def of_peer(text):
    """The same of collapsed stacks with libraries."""
    stacks = collections.Counter()
    for line in text.splitlines():
        frames, _, count = line.rpartition(" ")
        stacks[tuple(same(frame) for frame in reversed(frames.split(";")))] += int(count)
    return stacks


def same(frame):
    """A frame of async-profiler's as the agent writes it."""
    if frame.endswith("_[k]"):
        return "kernel." + frame[:-4].split(".")[0]
    if frame.startswith("/"):
        return LONG.sub(r"\1", Path(frame).name) + ".(no name)"
    library, mark, name = frame.partition("`")
    if mark:
        name = ALIAS.sub("__memmove_", without_types(name))
        return LONG.sub(r"\1", library) + "." + name
    return frame.replace("/", ".")


def without_types(name):
    """A C++ name without what it returns, its arguments and templates."""
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    return name.partition("(")[0].rpartition(" ")[2] or name


def kind(frame):
    """What a frame is of."""
    if frame.startswith("kernel."):
        return "kernel"
    found = re.match(r"(lib\w+|linux-vdso)(-[\d.]+)?\.so", frame)
    return found[1] if found else "Java and stubs"


def shares(stacks, key):
    total = sum(stacks.values()) or 1
    found = collections.Counter()
    for stack, count in stacks.items():
        for name in key(stack):
            found[name] += count / total
    return found


def difference(one, other):
    """Half the sum of the differences: 0 for equal distributions, 1 for those that share nothing."""
    return sum(abs(one[name] - other[name]) for name in set(one) | set(other)) / 2


def measure(home, libraries, work):
    run = lambda words, **more: subprocess.run([str(word) for word in words], cwd=work, capture_output=True, text=True, check=True, **more)
    spun = work / "libspun.so"
    run([os.environ.get("CC", "cc"), "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-o", spun, TESTS / "native" / "spun.c",
         f"-I{home}/include", f"-I{home}/include/linux"])
    run([home / "bin" / "javac", "-nowarn", "-d", work, *(TESTS / "java" / f"{name}.java" for name in ("InNative", "Calls", "Collected"))])
    rows, tops = [], []
    for title, arguments in PROGRAMS.items():
        found = {}
        for tool, flags in TOOLS.items():
            out = work / "out"
            out.unlink(missing_ok=True)
            program = [argument.format(spun=spun) for argument in arguments]
            done = run([home / "bin" / "java", flags.format(out=out, **libraries), "-cp", work, *program])
            if "no kernel frames" in done.stderr:
                log(done.stderr.strip())
            read = of_agent if tool == OURS else of_peer
            stacks = read(out.read_text(errors="replace"))
            # The compilers do other things in each run; what counts is the program's work, or that of the collector's threads.
            works = ["libjvm.so.WorkerThread", "GangWorker"] if program[0] == "Collected" else [f"{program[0]}.main"]
            is_work = lambda stack: any(name in frame for frame in stack for name in works)
            found[tool] = (collections.Counter({s: c for s, c in stacks.items() if is_work(s)}), sum(stacks.values()))
        ours, theirs = found[OURS][0], found[THEIRS][0]
        top = lambda stack: [next((frame for frame in stack if not STUB.match(frame)), stack[0])]
        both = [shares(stacks, top) for stacks in (ours, theirs)]
        kinds = [shares(stacks, lambda stack: [kind(stack[0])]) for stacks in (ours, theirs)]
        anywhere = [shares(stacks, set) for stacks in (ours, theirs)]
        common = [name for name, share in anywhere[1].most_common() if share > 0.05 and not name.endswith("]")]
        seen = [name for name in common if abs(anywhere[0][name] - anywhere[1][name]) < 0.1]
        largest = max(abs(both[0][name] - both[1][name]) for name, _ in (both[0] + both[1]).most_common(20))
        depth = lambda stacks: sum(len(s) * c for s, c in stacks.items()) / max(1, sum(stacks.values()))
        rows.append([title, f"{sum(ours.values())} of {found[OURS][1]}", f"{sum(theirs.values())} of {found[THEIRS][1]}",
                     f"{difference(*kinds):.3f}", f"{difference(*both):.3f}", f"{largest:.3f}", f"{len(seen)} of {len(common)}", f"{depth(ours):.1f}, {depth(theirs):.1f}"])
        names = [name for name, _ in (both[0] + both[1]).most_common(6)]
        tops += [[title.split(":")[0], f"`{name}`", f"{both[0][name]:.1%}", f"{both[1][name]:.1%}"] for name in names]
    return rows, tops


def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--jdks", nargs="+", type=Path, required=True, metavar="HOME")
    p.add_argument("--agent", type=Path, help="this libhprof.so instead of building the release one")
    p.add_argument("--peers", type=Path, required=True, help="folder with libasyncProfiler.so")
    p.add_argument("--note", default="", help="a sentence to keep with the results")
    p.add_argument("--save", action="store_true", help="write bench/results/DATE-frames-MACHINE.json and .md")
    options = p.parse_args()
    libraries = find_libraries(options)
    if "async" not in libraries:
        sys.exit("no libasyncProfiler.so in --peers")
    busy = f"The load average was {os.getloadavg()[0]:.1f} when it began."
    results = {"date": datetime.date.today().isoformat(), "machine": machine(), "note": f"{busy} {options.note}".strip(), "jdks": {}}
    for home in options.jdks:
        with tempfile.TemporaryDirectory(prefix="bench-frames-") as work:
            results["jdks"][jdk_name(home)] = measure(home.resolve(), libraries, Path(work))
    print(render(results))
    if options.save:
        save(results, render(results), "frames-")


def render(results):
    m = results["machine"]
    text = [f"# Native and kernel frames beside async-profiler, {results['date']}", "",
            f"{m['cores']} cores ({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}. {results['note']}", ""]
    heads = ["program", "its samples, tenure", "async-profiler", "difference by library", "by innermost function", "largest of 20", "common frames", "mean depth"]
    for name, (rows, tops) in results["jdks"].items():
        text += [f"## JDK {name}", "", table(heads, rows), "", table(["program", "innermost function", "tenure", "async-profiler"], tops), ""]
    return "\n".join(text + ["## What was run", ""] + [f"* {tool}: `{flags}`" for tool, flags in TOOLS.items()]) + "\n"


if __name__ == "__main__":
    main()
