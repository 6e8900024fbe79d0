#!/usr/bin/env bash
# Lets two other readers of kernel dumps, kdmp-parser and volatility3, read the
# dumps that fixtures/machine writes, and compares what they find with what the
# machine holds. It proves the writer, so that a test of this project's reader
# is not one of two like mistakes. Both come from PyPI; without them, and without
# a way to install them, it says so and ends well.
#
#   bench/kernelpeers.sh [FOLDER]      the table of bench/README.md on stdout
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-${TMPDIR:-/tmp}/dumptriage-kernelpeers}
mkdir -p "$work/dumps"
python=$work/venv/bin/python
if [ ! -x "$python" ] || ! "$python" -c 'import kdmp_parser, volatility3' 2>/dev/null; then
    { python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 10 kdmp-parser==0.7.4 volatility3==2.28.2; } >"$work/install.log" 2>&1 || {
        echo "kernelpeers: kdmp-parser and volatility3 cannot be installed ($work/install.log): nothing compared" >&2
        exit 0
    }
fi
rm -f "$work"/dumps/*
go run ./bench/kerneldump "$work/dumps" "" 1 2 3 5 6 8 9 10 >/dev/null
"$python" bench/kernelpeers.py "$work/dumps" "$work/symbols"
