package scrub_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"dumptriage/dump"
	"dumptriage/fixtures/machine"
	"dumptriage/scrub"
	"dumptriage/triage"
)

// Where KTRAP_FRAME of x64 has registers that no frame's address depends on, by the public
// symbols: rax, rcx, rdx, r8 to r11, rbx, rdi, rsi.
var trapRegisters = []uint64{0x30, 0x38, 0x40, 0x48, 0x50, 0x58, 0x60, 0x140, 0x148, 0x150}

// CONTEXT of x64: rax, rcx, rdx, rbx, rsi, rdi, r8 to r15.
var contextRegisters = []int{0x78, 0x80, 0x88, 0x90, 0xa8, 0xb0, 0xb8, 0xc0, 0xc8, 0xd0, 0xd8, 0xe0, 0xe8, 0xf0}

// TestTrapFrameRegisters plants eight characters in the registers that system calls saved,
// and what system threads have in the place of those.
func TestTrapFrameRegisters(t *testing.T) {
	dumps := map[string][]byte{}
	for _, v := range []*machine.Variant{&machine.Windows7, &machine.Windows22H2} {
		dumps[v.Name] = machine.Build(*v).Dump(machine.BitmapFull)
	}
	b, err := os.ReadFile(filepath.Join("..", "fixtures", "readline", "ConsoleApp1.Kernel.dmp"))
	if err != nil {
		t.Fatal(err)
	}
	dumps["-mk"] = b
	for name, b := range dumps {
		d := open(t, bytes.Clone(b), "plain.dmp")
		var marks []string
		for _, th := range d.Threads() {
			k := th.Kernel
			if k == nil || k.InitialStack == 0 {
				continue
			}
			for _, off := range trapRegisters {
				if at := fileOffset(d, b, k.InitialStack-0x190+off); at > 0 {
					mark := fmt.Sprintf("%04xhush", len(marks))
					copy(b[at:], mark)
					marks = append(marks, mark)
				}
			}
		}
		if len(marks) < 12 {
			t.Fatalf("%s: only %d marks: the test shows little", name, len(marks))
		}
		res := checkKernel(t, nil, open(t, b, "marked.dmp"), triage.Options{})
		for i, m := range marks {
			if bytes.Contains(res.Kernel, []byte(m)) {
				t.Errorf("%s: the new dump holds mark %d of %d; loosened %v", name, i, len(marks), res.Loosened)
				break
			}
		}
	}
}

// fileOffset finds where memory lies in the file, by a page's bytes; 0 when they lie in no
// place, or in several.
func fileOffset(d *triage.Dump, b []byte, va uint64) int {
	var around [64]byte
	n, _ := d.Memory().ReadAt(around[:], va-32)
	if n < len(around) || bytes.Count(b, around[:]) != 1 {
		return 0
	}
	return bytes.Index(b, around[:]) + 32
}

// TestThreadRegisters plants eight characters in registers of a user dump: those of the
// thread that failed stay, since they tell why.
func TestThreadRegisters(t *testing.T) {
	path := filepath.Join("..", "fixtures", "locks", "lockdemo.dmp")
	d := openFile(t, path)
	b, err := io.ReadAll(io.NewSectionReader(d.File, 0, d.File.Size()))
	if err != nil {
		t.Fatal(err)
	}
	var marks []string
	for _, th := range d.Threads() {
		at := contextOffset(b, &th.Context)
		if at < 0 {
			t.Fatalf("the context of thread %d is not found", th.ID)
		}
		for _, off := range contextRegisters[:3] { // volatile: no stack depends on them
			mark := fmt.Sprintf("%04xhush", len(marks))
			copy(b[at+off:], mark)
			marks = append(marks, mark)
		}
	}
	res, err := scrub.Dump(open(t, b, "marked.dmp"), scrub.Options{})
	if err != nil || len(res.Differences) > 0 {
		t.Fatal(err, res.Differences)
	}
	for i, m := range marks {
		if bytes.Contains(res.Bytes, []byte(m)) {
			t.Errorf("the new dump holds mark %d of %d", i, len(marks))
		}
	}
	crash := openFile(t, filepath.Join("..", "fixtures", "crashes", "thrown.dmp"))
	sameRegisters(t, crash.Exception().ThreadID, &crash.Exception().Context, &open(t, check(t, crash, triage.Options{}).Bytes, "small.dmp").Exception().Context)
}

// contextOffset finds a CONTEXT of x64 in a file by its stack and instruction pointers.
func contextOffset(b []byte, r *dump.Registers) int {
	const rsp, rip = 0x98, 0xf8
	sp, _ := r.SP()
	pc, _ := r.PC()
	for at := 0; at+0x4d0 <= len(b); at += 4 {
		if le64(b[at+rsp:]) == sp && le64(b[at+rip:]) == pc {
			return at
		}
	}
	return -1
}

func le64(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// TestSerialNumberCopies: a bugcheck's parameters that are a part of a serial number (0x9A)
// lie in each copy of the registers that stopped the system, which processors keep too.
func TestSerialNumberCopies(t *testing.T) {
	type places struct {
		code, parameters, context int // of the header
		register, sp, pc, word    int // of CONTEXT, winnt.h
	}
	x64, arm64 := places{0x38, 0x40, 0x348, 0xc0, 0x98, 0xf8, 8}, places{0x38, 0x40, 0x348, 0x20, 0x100, 0x108, 8} // r9, x3
	x86 := places{0x28, 0x2c, 0x320, 0xa8, 0xc4, 0xb8, 4}                                                          // edx
	for v, at := range map[*machine.Variant]places{&machine.Windows7: x64, &machine.Windows22H2: x64, &machine.WindowsX86: x86, &machine.WindowsARM: arm64} {
		b := machine.Build(*v).Dump(machine.BitmapFull)
		serial := []byte("\xee\xff\xc0\xa1\x71\x5e\x1d\x00")[:at.word]
		binary.LittleEndian.PutUint32(b[at.code:], 0x9a)
		clear(b[at.parameters : at.parameters+4*at.word])
		copy(b[at.parameters+2*at.word:], serial) // where the first one is 0
		copies, header := 0, bytes.Clone(b[at.context:at.context+0x110])
		same := func(i, off int) bool { return bytes.Equal(b[i+off:i+off+at.word], header[off:off+at.word]) }
		for i := 0; i+len(header) <= len(b); i += 4 {
			if same(i, at.sp) && same(i, at.pc) {
				copy(b[i+at.register:], serial)
				copies++
			}
		}
		if copies < 2 {
			t.Fatalf("%s: %d copies: the test shows little", v.Name, copies)
		}
		if res := checkKernel(t, nil, open(t, b, "marked.dmp"), triage.Options{}); bytes.Contains(res.Kernel, serial) {
			t.Errorf("%s: the new dump holds the serial number", v.Name)
		}
	}
}
