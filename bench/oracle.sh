#!/usr/bin/env bash
# The long form of the unwinding oracle: every function of images by Microsoft's
# compiler, GCC, Clang, Rust and Go, and the tables of mutants. Needs
# libunicorn-dev, the runtime of mingw-w64's GCC, and npm to fetch the images,
# which are left in a folder for the next time and are no part of the project.
#
#   bench/oracle.sh [FOLDER]            the images, half an hour on two cores
#   MUTANTS=1 bench/oracle.sh [FOLDER]  and the mutants, written to docs/unwinding.md
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-${TMPDIR:-/tmp}/dumptriage-oracle}
mkdir -p "$work"

fetch() { # npm package, version, file in it
    local name=${1//\//-}
    name=${name#@}-$2
    if [ ! -f "$work/$name/package/$3" ]; then
        (cd "$work" && npm pack --silent "$1@$2" >/dev/null && mkdir -p "$name" && tar xzf "$name.tgz" -C "$name")
    fi
    npm+=("$work/$name/package/$3")
}
npm=()
fetch @rollup/rollup-win32-x64-msvc 4.68.8 rollup.win32-x64-msvc.node
fetch @swc/core-win32-x64-msvc 1.16.22 swc.win32-x64-msvc.node
fetch @img/sharp-win32-x64 0.35.5 lib/sharp-win32-x64-0.35.5.node
fetch @img/sharp-win32-x64 0.35.5 lib/libvips-42.dll
fetch @esbuild/win32-x64 0.28.2 esbuild.exe

x64=("${npm[@]}")
npm=()
fetch @ast-grep/napi-win32-arm64-msvc 0.51.3 ast-grep-napi.win32-arm64-msvc.node
fetch @next/swc-win32-arm64-msvc 16.4.6 next-swc.win32-arm64-msvc.node
arm64=("${npm[@]}")

go build -tags oracle -o "$work/oracle" ./unwind/oracle/cmd/unwind-oracle
images="$(go list -m -f '{{.Dir}}' github.com/saferwall/pe)/test"
gcc=$(compgen -G '/usr/lib/gcc/x86_64-w64-mingw32/*-posix' | head -1)
"$work/oracle" -failures 20 fixtures/unwind/{opcodes,epilogs,vectors,version3}.dll "$gcc"/{libgcc_s_seh-1,libstdc++-6}.dll \
    "$images"/{kernel32.dll,acpi.sys,SgrmEnclave_secure.dll,D2D1Debug2.dll,PSCRIPT5.DLL,WdBoot.sys,YourPhone.Exp.WinRT.dll,WdfCoInstaller01011.dll,amdi2c.sys,amdxata.sys,pwsh.exe,mfc140u.dll,liblzo2-2.dll,putty.exe,brave.exe} \
    "${x64[@]}"
"$work/oracle" -failures 20 unwind/oracle/testdata/arm64/unwind-arm64.dll "${arm64[0]}"
"$work/oracle" -header=false -failures 20 -stride 10 "${arm64[1]}"
# Every ARM64 entry decoded as llvm-readobj-19 decodes it.
mkdir -p "$work/arm64" && cp -u "${arm64[@]}" "$work/arm64/"
DUMPTRIAGE_ARM64_IMAGES="$work/arm64" go test -count=1 -run ARM64AgainstLLVM -v ./pdata
if [ "${MUTANTS:-}" = 1 ]; then
    go test -tags oracle -timeout 30m -run Mutants ./unwind/oracle -update
fi
