#!/usr/bin/env bash
# Writes ec.dll, an ARM64EC image whose ARM64EC code calls x64 code and is called by it
# through LLVM's thunks, and what llvm-readobj says of its code map.
set -euo pipefail
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
clang-19 -target arm64ec-pc-windows-msvc -O1 -c ec.c -o "$out/ec.obj"
clang-19 -target arm64ec-pc-windows-msvc -c load.s -o "$out/load.obj"
clang-19 -target x86_64-pc-windows-msvc -O1 -c x64.c -o "$out/x64.obj"
lld-link-19 /machine:arm64ec /dll /noentry /nodefaultlib /export:x64_main /export:ec_outer /timestamp:0x7e57ab70 \
    /out:ec.dll "$out/ec.obj" "$out/x64.obj" "$out/load.obj"
llvm-readobj-19 --coff-load-config ec.dll | sed -n '/^CHPEMetadata/,/^]/p' >ec.readobj.txt
