package oracle

import (
	"os"
	"path/filepath"
	"testing"

	"dumptriage/fixtures"
)

// vectorImage holds what neither the checked-in fixtures nor compilers' output
// have, built by the assembler of the fixtures: code and unwind data from one
// description.
func vectorImage() *fixtures.Image {
	const rva = 0x1000
	rel32 := func(from, to uint32) []byte { // jmp
		d := to - (from + 5)
		return []byte{0xe9, byte(d), byte(d >> 8), byte(d >> 16), byte(d >> 24)}
	}
	parent := &fixtures.Function{RVA: rva + 0x200, Size: 0x60, Prolog: fixtures.Steps(fixtures.Pushes(fixtures.RBP, fixtures.RBX), fixtures.Alloc(0x28))}
	parent.Patches = []fixtures.Patch{{Offset: 0x20, Bytes: rel32(rva+0x220, rva+0x300)}}
	deeper := &fixtures.Function{RVA: rva + 0x300, Size: 0x60, Parent: parent, Prolog: fixtures.Steps(fixtures.Save(fixtures.R12, 0x10))}
	deeper.Patches = []fixtures.Patch{{Offset: 0x20, Bytes: rel32(rva+0x320, rva+0x400)}}
	shared := &fixtures.Function{RVA: rva + 0x500, Size: 0x60, Prolog: fixtures.Steps(fixtures.Push(fixtures.RBX), fixtures.Alloc(0x30))}
	shared.Patches = []fixtures.Patch{{Offset: 0x20, Bytes: rel32(rva+0x520, rva+0x600)}}
	return &fixtures.Image{
		Name: "vectors.dll", Base: 0x180000000, TimeDateStamp: 0x7e57ab52, SizeOfImage: 0x8000,
		Functions: []*fixtures.Function{
			// lea rsp, [rbp-0x60] and lea rsp, [r13-0xe8]: the frame register
			// points above the allocation, so that the epilog goes back down.
			{RVA: rva, Size: 0x40, Prolog: fixtures.Steps(fixtures.Pushes(fixtures.RBP, fixtures.RSI), fixtures.Alloc(0x20), fixtures.SetFrame(fixtures.RBP, 0x80))},
			{RVA: rva + 0x40, Size: 0x40, Prolog: fixtures.Steps(fixtures.Pushes(fixtures.R13, fixtures.RDI), fixtures.Alloc(8), fixtures.SetFrame(fixtures.R13, 0xf0))},
			// An allocation behind the frame register, and saves that count from it.
			{RVA: rva + 0x80, Size: 0x80, Prolog: fixtures.Steps(fixtures.Push(fixtures.RBP), fixtures.Alloc(0x90), fixtures.SetFrame(fixtures.RBP, 0x80), fixtures.Save(fixtures.R15, 0x40), fixtures.SaveXMM(9, 0x50))},
			{RVA: rva + 0x100, Version: 2, Size: 0x80, Prolog: fixtures.Steps(fixtures.Pushes(fixtures.R15, fixtures.RBX, fixtures.R12), fixtures.Alloc(0x30)), EarlyEpilogs: []uint32{0x30}},
			// A fragment of a fragment: the first two end in jumps to the next. Saves
			// count from the base of the entry that covers rip, so none allocates.
			parent, deeper,
			{RVA: rva + 0x400, Size: 0x60, Parent: deeper, Prolog: fixtures.Steps(fixtures.Save(fixtures.RDI, 0x18))},
			// A save by rsp before the frame register is set.
			{RVA: rva + 0x1c0, Size: 0x40, Prolog: fixtures.Steps(fixtures.Push(fixtures.RBP), fixtures.Alloc(0x40), fixtures.Save(fixtures.RBX, 0x30), fixtures.SetFrame(fixtures.RBP, 0x20))},
			// Clang's epilog of code that used AVX.
			{RVA: rva + 0x180, Size: 0x40, Prolog: fixtures.Steps(fixtures.Push(fixtures.RBX), fixtures.Alloc(0x20)), Patches: []fixtures.Patch{
				{Offset: 0x37, Bytes: []byte{0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc5, 0xf8, 0x77, 0xc3}}, // add rsp, 0x20; pop rbx; vzeroupper; ret
			}},
			// An indirect entry continues the function that it refers to.
			shared,
			{RVA: rva + 0x600, Size: 0x40, IndirectTo: shared, Patches: []fixtures.Patch{
				{Offset: 0x10, Bytes: []byte{0x48, 0x83, 0xc4, 0x30, 0x5b, 0xc3}}, // add rsp, 0x30; pop rbx; ret
			}},
		},
	}
}

// writeVectors writes the vectors and the checked-in fixtures to files.
func writeVectors(t testing.TB, dir string) (paths []string) {
	t.Helper()
	for name, b := range map[string][]byte{"vectors.dll": vectorImage().File(), "opcodes.dll": fixtures.OpcodeImage().File(), "epilogs.dll": fixtures.EpilogImage().File(), "version3.dll": fixtures.Version3Image().File()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}
