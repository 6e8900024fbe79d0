#!/usr/bin/env bash
# Measures many dumps and a large bucket database, against the goals in
# docs/performance.md: dumps a second and memory of a batch, and how a database of
# 100,000 incidents answers. Prints wall time and processor time.
#
#   bench/fleet.sh [DUMPS [INCIDENTS]]
set -euo pipefail
cd "$(dirname "$0")/.."
work=${TMPDIR:-/tmp}/dumptriage-fleet
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
go build -trimpath -o "$work/dumptriage" ./cmd/dumptriage
go build -trimpath -o "$work/buckets" ./bench/buckets
"$work/buckets" -fill "$work/large.db" -incidents "${2:-100000}"
python3 - "$work" "${1:-5000}" <<'PY'
import os, subprocess, sys, time
work, dumps = sys.argv[1], int(sys.argv[2])
tool = f"{work}/dumptriage"

def measure(name, *cmd, times=5, per=0):
    best = None
    for _ in range(times):
        for f in ("out.jsonl",):
            if os.path.exists(f"{work}/{f}"):
                os.remove(f"{work}/{f}")
        t = time.perf_counter()
        p = subprocess.Popen(cmd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, u = os.wait4(p.pid, 0)
        got = (u.ru_utime + u.ru_stime, time.perf_counter() - t, u.ru_utime, u.ru_maxrss / 1024)
        assert os.waitstatus_to_exitcode(status) == 0, (name, status)
        best = min(best or got, got)
    cpu, wall, user, rss = best
    rate = f", {per / cpu:.0f} a second of a processor" if per else ""
    print(f"{name}: {wall * 1000:.0f} ms, user {user * 1000:.0f} ms, with system {cpu * 1000:.0f} ms, {rss:.0f} MB{rate}")

small = [open("fixtures/" + f, "rb").read() for f in ("crash/crashdemo.dmp", "crash/legacy-x86.dmp", "crashes/abort.dmp", "crashes/thrown.dmp")]
middle = [open("fixtures/" + f, "rb").read() for f in ("locks/lockdemo.dmp", "bugcheck/faulty.dmp")]
for kind, sources, n in (("small", small, dumps), ("middle", middle, dumps // 5)):
    os.makedirs(f"{work}/{kind}")
    for i in range(n):
        with open(f"{work}/{kind}/{i}.dmp", "wb") as f:
            f.write(sources[i % len(sources)] + i.to_bytes(4, "little"))
os.makedirs(f"{work}/one")
open(f"{work}/one/1.dmp", "wb").write(small[0] + b"one")
images = ("--images", "fixtures", "--not-beside")
for j in ("1", "2"):
    measure(f"batch of {dumps} dumps of 3 to 7 KB, -j {j}", tool, "batch", "-q", "-j", j, *images, "--out", f"{work}/out.jsonl", f"{work}/small", times=3, per=dumps)
measure(f"batch of {dumps // 5} dumps of 110 KB, -j 1", tool, "batch", "-q", "-j", "1", *images, "--out", f"{work}/out.jsonl", f"{work}/middle", times=3, per=dumps // 5)
db = f"{work}/large.db"
measure("buckets list", tool, "buckets", "list", "--db", db)
measure("buckets list --top 20", tool, "buckets", "list", "--top", "20", "--db", db)
first = subprocess.run([tool, "buckets", "list", "--top", "1", "--db", db], capture_output=True, text=True).stdout.split("\n")[1].split()[1]
measure("buckets show, the largest", tool, "buckets", "show", first, "--db", db)
measure("batch of one dump into it", tool, "batch", "-q", "--db", db, "--out", f"{work}/out.jsonl", f"{work}/one", times=3)
PY
