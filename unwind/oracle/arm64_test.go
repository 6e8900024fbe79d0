package oracle

import (
	"context"
	"path/filepath"
	"testing"

	"dumptriage/internal/corpus"
)

// arm64Image is the image that testdata/arm64/build.sh builds.
func arm64Image(t testing.TB) string {
	t.Helper()
	return filepath.Join(moduleRoot(t), "unwind", "oracle", "testdata", "arm64", "unwind-arm64.dll")
}

// Every function of the checked-in image is unwound rightly at each of its
// instructions. llvm-readobj lists 62 entries, two of which are parts.
func TestARM64Vectors(t *testing.T) {
	needEmulator(t)
	r, err := Run(context.Background(), Job{Path: arm64Image(t), Limits: DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	if r.Functions != 60 || r.Returned < 50 || r.Prologs == 0 || r.Epilogs == 0 || r.Leaves == 0 || r.Calls.Tried == 0 {
		t.Errorf("too little was executed: %+v", r)
	}
	if r.Checks.Wrong+r.Calls.Wrong+r.Checks.Lost+r.Calls.Lost != 0 || len(r.Aborted) != 0 {
		t.Errorf("%+v", r)
	}
	t.Logf("%d functions, %d boundaries, %d checks, %d call sites", r.Functions, r.Boundaries, r.Checks.Tried, r.Calls.Tried)
}

// The images of the corpus, by Clang and Visual C++.
func TestARM64Corpus(t *testing.T) {
	needEmulator(t)
	dir, ok := corpus.Find("")
	if !ok {
		t.Skip("no corpus of real dumps here")
	}
	var paths []string
	for _, pattern := range []string{"wine/arm64/*.exe", "user/A15-pe-unwind-fixtures/test.exe"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		paths = append(paths, found...)
	}
	if len(paths) == 0 {
		t.Skip("the corpus has no ARM64 images")
	}
	for _, path := range paths {
		r, err := Run(context.Background(), Job{Path: path, Limits: DefaultLimits})
		if err != nil {
			t.Fatal(err)
		}
		if r.Functions == 0 || r.Checks.Wrong+r.Calls.Wrong != 0 || len(r.Aborted) != 0 {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

// Instructions as llvm-mc assembles them.
func TestDecodeARM64(t *testing.T) {
	le := func(w uint32) []byte { return []byte{byte(w), byte(w >> 8), byte(w >> 16), byte(w >> 24)} }
	for _, c := range []struct {
		text   string
		word   uint32
		class  class
		target int64
	}{
		{"bl #-8", 0x97fffffe, call, -8},
		{"blr x8", 0xd63f0100, call, 0},
		{"b #0x1000", 0x14000400, jump, 0x1000},
		{"b.ne #8", 0x54000041, branch, 8},
		{"cbz x0, #-4", 0xb4ffffe0, branch, -4},
		{"tbnz w0, #3, #-8", 0x371fffc0, branch, -8},
		{"br x16", 0xd61f0200, indirect, 0},
		{"ret", 0xd65f03c0, armReturn, 0},
		{"retab", 0xd65f0fff, armReturn, 0},
		{"pacibsp", 0xd503237f, pacIn, 0},
		{"autibsp", 0xd50323ff, pacOut, 0},
		{"svc #0", 0xd4000001, skip, 0},
		{"brk #1", 0xd4200020, end, 0},
		{"nop", 0xd503201f, plain, 0},
		{"fmov d8, #1.0", 0x1e6e1008, plain, 0},
	} {
		if d := decodeARM64(le(c.word)); d.class != c.class || int64(d.target) != c.target {
			t.Errorf("%s: class %d, target %d", c.text, d.class, int64(d.target))
		}
	}
	for text, w := range map[string]uint32{
		"sub sp, sp, #16": 0xd10043ff, "mov sp, x29": 0x910003bf, "sub sp, sp, x15, lsl #4": 0xcb2f73ff, "and sp, x9, #0xffffffffffffff80": 0x9279e13f,
		"stp x29, x30, [sp, #-16]!": 0xa9bf7bfd, "ldp d8, d9, [sp], #16": 0x6cc127e8, "str x19, [sp, #-32]!": 0xf81e0ff3, "ldr x19, [sp], #32": 0xf84207f3,
	} {
		if !decodeARM64(le(w)).writesSP() {
			t.Errorf("%s changes sp", text)
		}
	}
	for text, w := range map[string]uint32{"stp x21, x22, [sp, #16]": 0xa9015bf5, "cmp sp, #16": 0xf10043ff, "str x0, [x1, #-16]!": 0xf81f0c20, "add x29, sp, #80": 0x910143fd} {
		if decodeARM64(le(w)).writesSP() {
			t.Errorf("%s changes no sp", text)
		}
	}
}
