#!/bin/sh
# Rebuilds the test PDBs and the answers of llvm-symbolizer to compare with.
# Needs clang-19, lld-link-19 and llvm-symbolizer-19.
set -e
cd "$(dirname "$0")"
here=$PWD
work=/tmp/pdb-testdata # the linker records it: a fixed name gives the same bytes again
mkdir "$work"
trap 'rm -rf "$work"' EXIT
build() { # name, target, machine
	clang-19 --target="$2" -O2 -g -gcodeview -fno-exceptions -fno-rtti -fms-extensions -ffile-prefix-map="$PWD"=/src -fdebug-compilation-dir=/src \
		-mno-stack-arg-probe -fno-omit-frame-pointer -c "$here/inline.cpp" -o "$work/inline.obj"
	(cd "$work" && lld-link-19 inline.obj /out:"$1.exe" /debug /pdb:"$1.pdb" /pdbaltpath:"$1.pdb" /pdbsourcepath:/src /nodefaultlib /entry:entry /subsystem:console \
		/machine:"$3" /Brepro /opt:noref /pdbpagesize:4096)
	cp "$work/$1.pdb" "$1.pdb"
	size=$(llvm-pdbutil-19 dump -section-headers "$1.pdb" | awk '/virtual size/ && !n++ {print $1}')
	(cd "$work" && for off in $(seq 0 2 $((0x$size - 1))); do printf '0x%x\n' $((0x1000 + off)); done |
		llvm-symbolizer-19 --obj="$1.exe" --relative-address --functions=short --no-demangle --output-style=JSON) |
		sed 's/"ModuleName":"[^"]*",//' >"$1.txt"
}
build inline-x64 x86_64-pc-windows-msvc x64
build inline-x86 i686-pc-windows-msvc x86
llvm-pdbutil-19 dump -fpo inline-x86.pdb >inline-x86.fpo.txt
llvm-pdbutil-19 dump -publics inline-x64.pdb >inline-x64.publics.txt
