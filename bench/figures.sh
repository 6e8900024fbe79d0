#!/usr/bin/env bash
# Measures the whole command on the kinds of dump that cost most, against the
# budgets in docs/performance.md. Needs python3 and, for the real dump, a corpus
# beside the checkout. Prints wall time and peak RSS, best of several runs.
set -euo pipefail
cd "$(dirname "$0")/.."
shared="$(cd .. && pwd)/shared"
work=${TMPDIR:-/tmp}/dumptriage-bench
mkdir -p "$work"
go build -trimpath -o "$work/dumptriage" ./cmd/dumptriage
gen="$shared/tools/synth-dumps/gen.py"

measure() { # name, command...
    local name=$1
    shift
    python3 - "$name" "$@" <<'PY'
import os, resource, subprocess, sys, time
name, cmd = sys.argv[1], sys.argv[2:]
best, rss = None, 0
for _ in range(7):
    t = time.perf_counter()
    p = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    wall = time.perf_counter() - t
    best = wall if best is None else min(best, wall)
    rss = max(rss, usage.ru_maxrss)
print("%-34s %8.1f ms  %7.1f MB RSS  exit %d" % (name, best * 1000, rss / 1024, os.waitstatus_to_exitcode(status)))
PY
}

measure "start (--version)" "$work/dumptriage" --version
measure "readline pair, JSON" "$work/dumptriage" stacks --json fixtures/readline/ConsoleApp1.dmp --images fixtures/readline/images
if [ -f "$gen" ]; then
    small="$shared/corpus/user/A08-fastfail-x64/tiny-exe-fastfail.dmp"
    measure "100 KB x64 dump, JSON" "$work/dumptriage" stacks --json "$small"
    [ -f "$work/t1000.dmp" ] || python3 "$gen" "$work/t1000.dmp" 1000 65536 50
    measure "1000 hostile threads, 67 MB, JSON" "$work/dumptriage" stacks --json "$work/t1000.dmp"
    [ -f "$work/full.dmp" ] || python3 "$gen" "$work/full.dmp" 100 65536 50 2147483648 full
    measure "2.15 GB full memory, JSON" "$work/dumptriage" stacks --json "$work/full.dmp"
fi
