#!/bin/sh
# Makes the heap dumps of the bench:  make.sh DIR [d50] [d500] [d2g] [d6g] [leak] [d50g]      (the first three when none is named)
# A dump that is already there stays as it is. JAVA17 and JAVA25 name the JDKs to use (default: JAVA_HOME, else PATH);
# other versions work too, and give the same shape with slightly other numbers. Run it on a machine with memory to spare:
# d2g wants 6 GB of Java heap, d6g 14 GB. d50g is no heap of a VM: a program writes 51 GB, and what is true of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
dir=$1; shift
[ $# -ge 1 ] || set -- d50 d500 d2g
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
half=$dir/unfinished
mkdir -p "$half"

home() { # the JDK's folder: from $1, else JAVA_HOME, else what `java` on PATH says
    if [ -n "$1" ]; then echo "$1"; elif [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME"
    else java -XshowSettings:properties -version 2>&1 | sed -n 's/^ *java\.home = //p'; fi
}
jdk17=$(home "${JAVA17:-}")
jdk25=$(home "${JAVA25:-${JAVA17:-}}")

make() { # NAME JDK SOURCE: compiles and runs SOURCE; the words after it are options of the JVM, then --, then arguments
    name=$1; jdk=$2; main=$3; shift 3
    [ ! -e "$dir/$name.hprof" ] || { echo "$name: already there"; return; }
    classes=$(mktemp -d)
    "$jdk/bin/javac" -d "$classes" -sourcepath "$here" "$here/$main.java"
    options=
    while [ "$1" != -- ]; do options="$options $1"; shift; done; shift
    # shellcheck disable=SC2086 # the options are words
    "$jdk/bin/java" $options -cp "$classes" "$main" "$@" || { rm -rf "$classes" "$out"; exit 1; }
    mv "$half/$name.hprof" "$dir"
    rm -rf "$classes"
}

for name; do
    out=$half/$name.hprof
    rm -f "$out" "$out.expected.json" # of a run that was stopped
    case $name in
        # strings, maps, lists, a long linked list, a random graph: 1.0 million objects
        d50) make d50 "$jdk17" Shop -XX:+UseG1GC -- 16000 "$out" ;;
        # a compiler with its trees and symbols: 7.4 million objects of 3,400 classes, four references each
        d500)
            sources=$jdk25/lib/src.zip
            [ -e "$sources" ] || { echo "d500 needs the JDK's sources: no $sources" >&2; exit 1; }
            make d500 "$jdk25" JavacHeap -XX:+UseG1GC -Xmx4g -- "$sources" "$out" ;;
        # the same with 200,000 sessions that CompilerLeak$SessionRegistry.SESSIONS never lets go
        leak)
            sources=$jdk25/lib/src.zip
            [ -e "$sources" ] || { echo "leak needs the JDK's sources: no $sources" >&2; exit 1; }
            make leak "$jdk25" CompilerLeak -XX:+UseG1GC -Xmx5g -- "$sources" "$out" 200000 ;;
        # the shape of d50, forty times: 38.5 million objects
        d2g) make d2g "$jdk17" Shop -XX:+UseSerialGC -Xmx6g -- 640000 "$out" ;;
        # and a hundred times, with 300 MB of buffers: 95 million objects
        d6g) make d6g "$jdk17" Shop -XX:+UseSerialGC -Xmx14g -- 1500000 "$out" 20000000 300 ;;
        # 2.2 billion objects with 4-byte ids
        d50g)
            make d50g "$jdk17" Billions -Xmx2g -- 2200000000 "$out"
            [ ! -e "$out.expected.json" ] || mv "$out.expected.json" "$dir" ;;
        *) echo "make.sh: no dump is called $name" >&2; exit 2 ;;
    esac
done
rmdir "$half" 2>/dev/null || true
