#!/usr/bin/env bash
# Ends a batch by SIGKILL at random moments and goes on with it, and compares the
# file and the database with those of a batch that nobody ended.
#
#   bench/batchkill.sh [DUMPS [KILLS]]
set -euo pipefail
cd "$(dirname "$0")/.."
work=${TMPDIR:-/tmp}/dumptriage-batchkill
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
go build -trimpath -o "$work/dumptriage" ./cmd/dumptriage
python3 - "$work" "${1:-10000}" "${2:-20}" <<'PY'
import filecmp, os, random, resource, sqlite3, subprocess, sys, time
work, dumps, kills = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sources = [open("fixtures/" + f, "rb").read() for f in
           ("crash/crashdemo.dmp", "crash/mingw.dmp", "crash/legacy-x86.dmp", "crashes/abort.dmp", "crashes/thrown.dmp", "crashes/freed.dmp")]
for i in range(dumps):  # bytes behind the end make another content of the same facts
    os.makedirs(f"{work}/in/{i % 100}", exist_ok=True)
    with open(f"{work}/in/{i % 100}/{i}.dmp", "wb") as f:
        f.write(sources[i % len(sources)] + i.to_bytes(4, "little"))

def batch(name, *more):
    return [f"{work}/dumptriage", "batch", "-q", "--not-beside", "--out", f"{work}/{name}.jsonl", "--db", f"{work}/{name}.db", *more, f"{work}/in"]

begun = time.time()
subprocess.run(batch("whole"), check=True, stdout=subprocess.DEVNULL)
whole = time.time() - begun
size = os.path.getsize(f"{work}/whole.jsonl")
random.seed(1)
killed = 0
for n in range(kills):
    p = subprocess.Popen(batch("cut", "--resume"), stdout=subprocess.DEVNULL)
    # Starting takes as long as there are records already: the moment is one of the
    # file's growth, and a random one after it.
    at = size * (n + random.random()) / (kills + 1)
    while p.poll() is None and (not os.path.exists(f"{work}/cut.jsonl") or os.path.getsize(f"{work}/cut.jsonl") < at):
        time.sleep(0.002)
    time.sleep(random.random() * whole / kills / 4)
    p.kill()
    killed += p.wait() == -9
begun = time.time()
subprocess.run(batch("cut", "--resume"), check=True, stdout=subprocess.DEVNULL)
rest = time.time() - begun
lines = sum(1 for _ in open(f"{work}/cut.jsonl"))
same = filecmp.cmp(f"{work}/whole.jsonl", f"{work}/cut.jsonl", shallow=False)

def content(db):
    c = sqlite3.connect(f"{work}/{db}.db")
    tables = [r[0] for r in c.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'meta' ORDER BY name")]
    return {t: sorted(c.execute(f"SELECT * FROM {t}"), key=repr) for t in tables}

a, b = content("whole"), content("cut")
different = [t for t in a if a[t] != b.get(t)]
print(f"{dumps} dumps in {whole:.1f} s; killed {killed} of {kills} times; the last run took {rest:.1f} s")
print(f"{lines} lines; file {'the same' if same else 'DIFFERS'}; database of {len(a['dumps'])} dumps, {len(a['buckets'])} buckets: {'the same' if not different else 'DIFFERS in ' + str(different)}")
sys.exit(not same or bool(different) or killed < kills * 3 // 4)
PY
