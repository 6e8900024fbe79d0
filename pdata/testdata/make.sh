#!/bin/sh
# Makes the images and goldens of this folder; see README.md.
set -eu
cd "$(dirname "$0")"
T=$(mktemp -d)
for f in fixture version2; do
	clang-19 --target=x86_64-pc-windows-msvc -c $f.s -o "$T/$f.obj"
done
(cd "$T" && lld-link-19 /dll /noentry /nodefaultlib /Brepro /debug /pdbaltpath:%_PDB% /pdbsourcepath:. /out:fixture.dll fixture.obj \
	/export:push_alloc_small /export:alloc_large_saves,@7 /export:NtClose=frame_pointer /export:ZwClose=frame_pointer \
	'/export:?frame@@YAXXZ=frame_pointer' '/export:odd.name-1=machine_frame' /export:by_ordinal=with_handler,@20,NONAME \
	/export:exported_data,DATA /export:zeroed,DATA /export:forwarded=KERNEL32.Sleep)
(cd "$T" && lld-link-19 /dll /noentry /nodefaultlib /Brepro /out:version2.dll version2.obj)
cp "$T/fixture.dll" "$T/version2.dll" .
chmod 644 fixture.dll version2.dll
llvm-readobj-19 --file-headers --sections --coff-exports --coff-debug-directory --unwind fixture.dll > fixture.readobj.txt
x86_64-w64-mingw32-objdump -p version2.dll | sed -n '/^Dump of/,$p' > version2.objdump.txt
rm -r "$T"
