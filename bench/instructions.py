#!/usr/bin/env python3
"""How many instructions the agent adds to one call and to one allocation, counted by valgrind's callgrind.

    bench/instructions.py --jdks JDK17 JDK25                          print the table
    bench/instructions.py --jdks JDK17 JDK25 --before LIB --save      beside an older libhprof.so; keep it in bench/results/

Python 3.9 or newer, standard library only, Linux, valgrind. README.md says what each figure means.
"""
import argparse, datetime, os, re, subprocess, sys, tempfile, time
from pathlib import Path

from agent import BASE, find_libraries, jdk_name
from run import BENCH, log, machine, save, table

# What Steps.java does, and the options of the agent that make it count that.
STEPS = {
    "call": ("a call of a method that calls nothing", ["cpu=times"]),
    "nest": ("a call of a method that calls another one: both calls", ["cpu=times"]),
    "object": ("an object with a constructor", ["heap=sites", "heap=sites,stacks=sampled"]),
    "array": ("an array of two int", ["heap=sites", "heap=sites,stacks=sampled"]),
}
FEW, MANY = 500_000, 2_500_000
# One thread, compilation when a method becomes hot and not some time later, and collections at the same places.
FLAGS = ["-XX:+UseSerialGC", "-Xms64m", "-Xmx64m", "-Xmn16m", "-Xbatch"]
# Callgrind's number of the thread that the launcher starts for main.
MAIN = "02"


def instructions(home, work, agent, step, times, *flags):
    """The instructions of the thread that does the step so many times, and the seconds it took. The clock of the agent ticks in another thread; the compilers
    and the collector are in others."""
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={work / 'counts'}", "--separate-threads=yes", "--smc-check=all", *flags,
             home / "bin" / "java", *FLAGS, *agent, "-cp", work, "Steps", step, times]
    began = time.monotonic()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=work)
    counts = work / f"counts-{MAIN}"
    found = re.search(r"^(?:totals|summary): (\d+)", counts.read_text(errors="replace"), re.M) if counts.exists() else None
    for old in work.glob("counts*"):
        old.unlink()
    if done.returncode or not found:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return {"instructions": int(found[1]), "seconds": time.monotonic() - began}


def measure(home, libraries, steps, work):
    rows = []
    for step in steps:
        options = STEPS[step][1]
        tools = [(BASE, "", [])] + [(option, build, [f"-agentpath:{library}={option},file={work / 'out'},force=y"])
                                    for option in options for build, library in libraries.items()]
        for option, build, agent in tools:
            if build == "before" and "stacks=" in option:
                continue  # Newer than most libraries somebody would compare with.
            few, many = (instructions(home, work, agent, step, times) for times in (FEW, MANY))
            slow = instructions(home, work, agent, step, MANY, "--cache-sim=yes") if "cpu=" in option else None
            rows.append({"jdk": jdk_name(home), "step": step, "option": option, "build": build, "few": few, "many": many, "slow": slow})
            log(f"JDK {jdk_name(home)} {step:<7} {option} {build}: {each(rows[-1]):.1f}")
    return rows


def each(run):
    """The instructions of one step, without those of the ticks of the clock: the same program executed more slowly shows how many a second has."""
    more = lambda one, other, of: run[one][of] - run[other][of]
    ticks = more("slow", "many", "instructions") / more("slow", "many", "seconds") if run["slow"] else 0
    return (more("many", "few", "instructions") - ticks * more("many", "few", "seconds")) / (MANY - FEW)


def render(results):
    m, runs = results["machine"], results["runs"]
    text = [f"# Instructions of one call and of one allocation, {results['date']}", "", f"{m['cpu']}, {results['valgrind']}. {results['note']}".strip(), "",
            f"A figure is the difference between the instructions of {MANY:,} and of {FEW:,} repetitions, divided by {MANY - FEW:,}. It includes the loop around the step, "
            "and is of the program's thread alone, without compilers and collections, and without the ticks of the agent's clock. *adds* is the difference to the program without the agent.", ""]
    rows = []
    for run in runs:
        base = next(r for r in runs if r["option"] == BASE and (r["jdk"], r["step"]) == (run["jdk"], run["step"]))
        rows.append([run["jdk"], STEPS[run["step"]][0], run["option"], run["build"], f"{each(run):.1f}", "" if run is base else f"{each(run) - each(base):.1f}"])
    text += [table(["JDK", "step", "options", "build", "instructions", "adds"], rows), "", f"Flags of the JVM: `{' '.join(FLAGS)}`."]
    return "\n".join(text) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("--jdks", nargs="+", type=Path, required=True, metavar="HOME")
    p.add_argument("--agent", type=Path, help="this libhprof.so instead of building the release one")
    p.add_argument("--before", type=Path, metavar="LIB", help="also an older libhprof.so")
    p.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS), help="only these steps")
    p.add_argument("--note", default="", help="a sentence to keep with the results")
    p.add_argument("--save", action="store_true", help="write bench/results/DATE-instructions-MACHINE.json and .md")
    options = p.parse_args()
    options.peers = None
    libraries = ({"before": options.before.resolve()} if options.before else {}) | {"now": find_libraries(options)["agent"]}
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    busy = f"The load average was {os.getloadavg()[0]:.1f} when it began."
    results = {"date": datetime.date.today().isoformat(), "machine": machine(), "note": f"{busy} {options.note}".strip(), "valgrind": valgrind, "runs": []}
    with tempfile.TemporaryDirectory(prefix="bench-instructions-") as work:
        subprocess.run(["javac", "--release", "8", "-nowarn", "-d", work, str(BENCH / "agent" / "Steps.java")], check=True, stderr=subprocess.DEVNULL)
        for home in options.jdks:
            results["runs"] += measure(home.resolve(), libraries, options.steps, Path(work))
    print(render(results))
    if options.save:
        save(results, render(results), "instructions-")


if __name__ == "__main__":
    main()
