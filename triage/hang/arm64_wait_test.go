package hang

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dumptriage/fixtures"
	"dumptriage/triage"
)

// armImage makes an image of one function of ARM64 code at RVA 1000h. With a frame
// it has an entry of packed unwind data: 32 bytes, in which it saved fp and lr (the
// format is that of Microsoft's documentation of ARM64 exception handling).
func armImage(name string, base uint64, function string, framed bool, code ...uint32) *fixtures.Image {
	b := make([]byte, 0, 4*len(code))
	for _, w := range code {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	im := &fixtures.Image{Name: name, Machine: 0xaa64, Base: base, TimeDateStamp: 0x7e57c000 + uint32(base>>24), SizeOfImage: 0x8000,
		Functions: []*fixtures.Function{{Name: function, RVA: 0x1000, Size: uint32(len(b)), Patches: []fixtures.Patch{{Offset: 0, Bytes: b}}}}}
	if framed {
		packed := uint32(1) | uint32(len(code))<<2 | 3<<21 | 2<<23 // Flag, FunctionLength, CR, FrameSize
		table := binary.LittleEndian.AppendUint32([]byte{0x00, 0x10, 0, 0}, packed)
		im.Sections = []fixtures.Section{{Name: ".pdata", RVA: 0x5000, Data: table, Characteristics: 0x40000040}}
	}
	return im
}

// armFile is the image's file, with its exception directory.
func armFile(im *fixtures.Image) []byte {
	file := im.File()
	if len(im.Sections) > 0 {
		nt := binary.LittleEndian.Uint32(file[0x3c:])
		binary.LittleEndian.PutUint32(file[nt+24+112+3*8:], 0x5000)
		binary.LittleEndian.PutUint32(file[nt+24+112+3*8+4:], 8)
	}
	return file
}

// A thread of an ARM64 process waits for an event whose handle its program's code
// gives: app!main calls KERNELBASE!WaitForSingleObject, which passes the handle on to
// the system call.
func TestWaitOfARM64(t *testing.T) {
	const appBase, baseBase, ntBase = 0x7ff610000000, 0x7ff820000000, 0x7ff830000000
	const push, setFP, pop, ret = 0xa9be7bfd, 0x910003fd, 0xa8c27bfd, 0xd65f03c0                                             // stp x29, x30, [sp, #-32]!; mov x29, sp; ldp x29, x30, [sp], #32; ret
	nt := armImage("ntdll.dll", ntBase, "NtWaitForSingleObject", false, 0xd4000081, ret)                                     // svc #4; ret
	base := armImage("KERNELBASE.dll", baseBase, "WaitForSingleObject", true, push, setFP, 0x52800002, 0xd63f0100, pop, ret) // mov w2, #0; blr x8
	app := armImage("app.exe", appBase, "main", true, push, setFP, 0xd2803880, 0xd63f0120, pop, ret)                         // mov x0, #0x1c4; blr x9
	app.Exe = true

	const top, sp = 0x5a1e500000, 0x5a1e4fff00
	stack := make([]byte, top-sp)
	word := func(va, v uint64) { binary.LittleEndian.PutUint64(stack[va-sp:], v) }
	word(sp, sp+0x20)              // WaitForSingleObject's saved fp
	word(sp+8, appBase+0x1010)     // and lr
	word(sp+0x20, 0)               // main's
	word(sp+0x28, 0)               // nobody called it
	context := make([]byte, 0x390) // CONTEXT_ARM64
	put := func(off int, v uint64) { binary.LittleEndian.PutUint64(context[off:], v) }
	binary.LittleEndian.PutUint32(context, 0x400007)
	put(8+8*29, sp)              // fp
	put(8+8*30, baseBase+0x1010) // lr
	put(0x100, sp)
	put(0x108, ntBase+0x1004)
	m := &fixtures.Minidump{Time: time.Date(2024, 2, 1, 8, 30, 0, 0, time.UTC),
		System:  fixtures.SystemInfo{Processor: fixtures.ProcessorARM64, Processors: 8, Major: 10, Build: 22631},
		Process: &fixtures.MiscInfo{PID: 0x1c08},
		Threads: []fixtures.Thread{{ID: 0x1c0c, PriorityClass: 0x20, TEB: 0x2fd000, Stack: fixtures.Range{VA: sp, Data: stack}, Context: context}},
		Memory:  []fixtures.Range{{VA: sp, Data: stack}},
		Handles: []fixtures.Handle{{Value: 0x1c4, Type: "Event", HandleCount: 1, PointerCount: 2}}}
	dir := t.TempDir()
	for _, im := range []*fixtures.Image{app, base, nt} {
		m.Modules = append(m.Modules, im.Module(`C:\Windows\System32\`+im.Name, [4]uint16{10, 0, 22631, 0}))
		if err := os.WriteFile(filepath.Join(dir, im.Name), armFile(im), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "app.dmp")
	if err := os.WriteFile(file, m.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := triage.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	inc, err := triage.Analyze(d, nil, "", triage.Options{Images: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer inc.Close()
	frames := inc.Threads[0].User.Frames
	if len(frames) != 3 || frames[2].Name.Function != "main" {
		t.Fatalf("%d frames: %+v", len(frames), frames)
	}
	w := Of(inc, builtinRules(t)).Waits[0]
	if w.Class != ClassEvent || w.Object.Value != 0x1c4 || w.Object.Confidence != High || w.Object.Evidence[0] != (Evidence{Source: FromCall, Frame: 2}) {
		t.Errorf("%s %+v", w.Class, w.Object)
	}
	// The system call's own argument, passed on by the function that was passed it.
	a := &analysis{inc: inc, space: inc.UserSpace, work: maxWork, sites: map[siteKey]*callSite{}}
	h := inc.Threads[0].User
	if v, ev, ok := a.argument(h, h.FrameRegisters(3), 0, 0); !ok || v != 0x1c4 || ev.Frame != 1 {
		t.Errorf("of the system call: %#x %v, %+v", v, ok, ev)
	}
	if v, _, ok := a.argument(h, h.FrameRegisters(3), 0, 2); !ok || v != 0 {
		t.Errorf("the third argument: %#x %v", v, ok)
	}
	if _, _, ok := a.argument(h, h.FrameRegisters(3), 0, 3); ok {
		t.Error("an argument that nothing sets is known")
	}
}
