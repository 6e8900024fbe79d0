#!/usr/bin/env bash
# Times the lists of processes and threads of a kernel dump of 16 GB (sparse;
# 206 processes, 4,020 threads) with this tool and with volatility3, which
# walks the same lists by symbols made for it (see kernelpeers.sh, which
# installs it). Prints wall and user seconds and the most memory in KiB.
#
#   bench/kernelspeed.sh [FOLDER]      180 MB on the disk, left for the next time
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-${TMPDIR:-/tmp}/dumptriage-kernelpeers}
python=$work/venv/bin/python
[ -x "$python" ] || { echo "run bench/kernelpeers.sh first, which installs volatility3" >&2; exit 1; }
mkdir -p "$work/large" "$work/symbols"
dump=$(compgen -G "$work/large/*-1.dmp" || true)
if [ -z "$dump" ]; then
    go run ./bench/kerneldump -large "$work/large" 22H2 1 >/dev/null
    dump=$(compgen -G "$work/large/*-1.dmp")
fi
go build -trimpath -o "$work/dumptriage" ./cmd/dumptriage

# A time is the best of five.
measure() {
    local name=$1
    shift
    for _ in 1 2 3 4 5; do
        { command time -f '%e %U %M' "$@" >/dev/null; } 2>&1 | tail -1
    done | sort -n | head -1 | awk -v name="$name" '{printf "| %s | %.2f | %.2f | %.0f |\n", name, $1, $2, $3 / 1024}'
}
echo '| command | wall s | user s | most memory MB |'
echo '| --- | ---: | ---: | ---: |'
measure 'dumptriage processes' "$work/dumptriage" processes "$dump"
measure 'dumptriage threads' "$work/dumptriage" threads "$dump"
measure 'dumptriage stacks --all' "$work/dumptriage" stacks --all "$dump"
measure 'volatility3, processes and threads' "$python" bench/kernelpeers.py -walk "$dump" "$work/symbols"
"$python" bench/kernelpeers.py -walk "$dump" "$work/symbols"
