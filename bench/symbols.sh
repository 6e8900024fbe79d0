#!/usr/bin/env bash
# Measures the readers of symbols on large files that it makes: a PDB of 100 MB and
# more by clang and lld, the same one compressed when pdbtool (cargo install pdbtool)
# is there, a Breakpad file of 500 MB, and mangled names. Prints wall time and peak
# RSS of whole processes, the best of five, and what benchmarks say of single steps.
# usage: bench/symbols.sh [IMAGE WITH DWARF]
set -euo pipefail
cd "$(dirname "$0")/.."
work=${TMPDIR:-/tmp}/dumptriage-bench-symbols
mkdir -p "$work"
tool() { for t in "$1-19" "$1-18" "$1-17" "$1-16" "$1-14" "$1"; do command -v "$t" && return; done; return 1; }

measure() { # name, command...
    python3 - "$@" <<'PY'
import os, subprocess, sys, time
name, cmd = sys.argv[1], sys.argv[2:]
best, rss, status = None, 0, 0
for _ in range(5):
    t = time.perf_counter()
    p = subprocess.Popen(cmd, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    wall = time.perf_counter() - t
    best = wall if best is None else min(best, wall)
    rss = max(rss, usage.ru_maxrss)
print("%-44s %8.1f ms  %7.1f MB RSS  exit %d" % (name, best * 1000, rss / 1024, os.waitstatus_to_exitcode(status)))
PY
}

make_pdb() {
    local cc ld
    cc=$(tool clang) && ld=$(tool lld-link) || { echo "no clang and lld: no large PDB"; return 1; }
    python3 - "$work" <<'PY'
import sys
for f in range(40):
    with open("%s/part%d.cpp" % (sys.argv[1], f), "w") as out:
        for i in range(2500):
            n = "%d_%d" % (f, i)
            out.write("namespace component%d { struct Record%s { int identifier; double value; Record%s *next; int method(int first, int second); };\n" % (f, n, n))
            out.write("inline int helper%s(int x) { return x * %d + 1; }\n" % (n, i))
            out.write("int Record%s::method(int first, int second) {\n  int local = helper%s(first);\n  if (second > local)\n    local += helper%s(second);\n  return local + identifier;\n} }\n" % (n, n, n))
        out.write("int start%d() { return 0; }\n" % f)
PY
    (
        cd "$work"
        for f in part*.cpp; do
            nice "$cc" --target=x86_64-pc-windows-msvc -O1 -g -gcodeview -c "$f" -o "${f%.cpp}.obj"
        done
        nice "$ld" -nologo -dll -noentry -nodefaultlib -debug -opt:noref -opt:noicf -out:large.dll -pdb:large.pdb part*.obj
        rm -f part*.obj part*.cpp
    )
}

[ -f "$work/large.pdb" ] || make_pdb || true
for package in pdb sym undname dwarf; do
    go test -c -o "$work/$package.test" "./symbols/$package"
done
if [ -f "$work/large.pdb" ]; then
    ls -l "$work/large.pdb" | awk '{ print "PDB of " $5 " bytes" }'
    export PDB_LARGE="$work/large.pdb"
    measure "PDB: open, name 100 addresses, twice" "$work/pdb.test" -test.run xxx -test.bench 'Large/first' -test.benchtime 1x
    "$work/pdb.test" -test.run xxx -test.bench 'Large' | grep ^Benchmark
    if command -v pdbtool >/dev/null; then
        [ -f "$work/large.msfz" ] || pdbtool --quiet pdz-encode "$work/large.pdb" "$work/large.msfz"
        ls -l "$work/large.msfz" | awk '{ print "the same, compressed: " $5 " bytes" }'
        export PDB_LARGE="$work/large.msfz"
        measure "compressed PDB: the same" "$work/pdb.test" -test.run xxx -test.bench 'Large/first' -test.benchtime 1x
        "$work/pdb.test" -test.run xxx -test.bench 'Large' | grep ^Benchmark
    fi
fi
"$work/sym.test" -test.run xxx -test.bench 'Index' -test.benchtime 3x | grep ^Benchmark
"$work/sym.test" -test.run xxx -test.bench 'Lookup' | grep ^Benchmark
(cd symbols/undname && "$work/undname.test" -test.run xxx -test.bench . -test.cpu 1 | grep ^Benchmark)
(cd symbols/dwarf && DWARF_LARGE="${1:-}" "$work/dwarf.test" -test.run xxx -test.bench . | grep ^Benchmark)
