#!/bin/sh
# Builds the images here, and writes down what llvm-symbolizer says of every byte of
# their code. Needs mingw-w64's gcc, clang, lld and LLVM's tools (here: gcc 12.2,
# clang 14.0.6).
set -e
cd "$(dirname "$0")"
flags="-O2 -g -nostdlib -fno-asynchronous-unwind-tables -ffile-prefix-map=$PWD=/src -Wl,--entry=start"
for v in 2 4 5; do x86_64-w64-mingw32-gcc $flags -gdwarf-$v mini.c -o gcc-$v.exe; done
clang --target=x86_64-w64-mingw32 $flags -fasynchronous-unwind-tables -gdwarf-4 -fuse-ld=lld mini.c -o clang-4.exe
clang --target=i686-w64-mingw32 $flags -gdwarf-4 -fuse-ld=lld mini.c -o clang-x86.exe -Wl,--entry=_start
x86_64-w64-mingw32-g++ $flags -fno-exceptions -gdwarf-5 scopes.cpp -o scopes.exe
x86_64-w64-mingw32-objcopy --only-keep-debug gcc-5.exe gcc-5.debug
x86_64-w64-mingw32-strip -o linked.exe gcc-5.exe
x86_64-w64-mingw32-objcopy --add-gnu-debuglink=gcc-5.debug linked.exe
x86_64-w64-mingw32-strip --strip-debug -o names.exe gcc-5.exe
for exe in gcc-*.exe clang-*.exe scopes.exe; do
	set -- $(x86_64-w64-mingw32-objdump -h $exe | grep ' \.text')
	base=$(x86_64-w64-mingw32-objdump -p $exe | sed -n 's/^ImageBase[[:space:]]*//p')
	begin=$((0x$4 - 0x$base)) end=$((0x$4 - 0x$base + 0x$3)) a=
	for i in $(seq $begin $((end - 1))); do printf '0x%x\n' $i; done |
		llvm-symbolizer --obj=$exe --relative-address --functions=short --print-address --output-style=LLVM >${exe%.exe}.txt
done
