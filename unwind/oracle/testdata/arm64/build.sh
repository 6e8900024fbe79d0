#!/usr/bin/env bash
# Builds unwind-arm64.dll, which is checked in, with clang and lld 19.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
target=(--target=aarch64-pc-windows-msvc -c)
for o in 1 2; do # where one chains frames and the other does not
    frame=(-fomit-frame-pointer)
    [ $o = 1 ] || frame=(-fno-omit-frame-pointer)
    clang-19 "${target[@]}" "${frame[@]}" -O$o -DSUFFIX=_$o -fasynchronous-unwind-tables -w -ffreestanding compiled.c -o "$work/compiled$o.o"
done
clang-19 "${target[@]}" written.s -o "$work/written.o"
clang-19 "${target[@]}" start.s -o "$work/start.o"
lld-link-19 /dll /noentry /nodefaultlib /timestamp:0x7e57ab64 /base:0x180000000 /opt:noref,noicf \
    /out:unwind-arm64.dll "$work"/{compiled1,compiled2,written,start}.o
rm -f unwind-arm64.lib
