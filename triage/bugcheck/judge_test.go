package bugcheck

import (
	"encoding/binary"
	"testing"

	"dumptriage/dump"
	"dumptriage/triage"
	"dumptriage/unwind"
)

// ranges is memory made of pieces.
type ranges map[uint64][]byte

func (r ranges) ReadAt(p []byte, va uint64) (int, error) {
	for base, b := range r {
		if va >= base && va-base < uint64(len(b)) {
			if n := copy(p, b[va-base:]); n == len(p) {
				return n, nil
			} else {
				return n, dump.Errorf(dump.OutOfRange, "memory", "short")
			}
		}
	}
	return 0, dump.Errorf(dump.OutOfRange, "memory", "nothing there")
}

const (
	wdfBase, acmeBase, ntBase = 0xfffff80010000000, 0xfffff80020000000, 0xfffff80030000000
	stackLimit, stackBase     = 0xffff800000001000, 0xffff800000002000
)

func kernelModule(name string, base uint64) *triage.Module {
	return &triage.Module{Module: &dump.Module{Base: base, Size: 0x10000, Path: name, Kernel: true}}
}

// scene is a bugcheck of a machine with nt, Wdf01000 and acme, whose kernel half has
// the frames at these addresses.
func scene(code uint32, mem ranges, at ...uint64) *triage.Incident {
	mods := []*triage.Module{kernelModule("Wdf01000.sys", wdfBase), kernelModule("acme.sys", acmeBase), kernelModule("ntoskrnl.exe", ntBase)}
	inc := &triage.Incident{System: dump.System{Arch: dump.AMD64}, KernelSpace: triage.NewView(mem, nil, mods),
		BugCheck: &triage.BugCheck{BugCheck: dump.BugCheck{Code: code}, Fault: triage.Fault{Source: dump.ContextHeader, Parameter: -1, Index: -1}}}
	half := &triage.Half{}
	for i, ip := range at {
		f := triage.Frame{Frame: unwind.Frame{IP: ip, SP: stackLimit + uint64(i)*0x10, Trust: unwind.TrustCFI, Method: unwind.MethodPdata}, Module: inc.KernelSpace.Module(ip)}
		half.Frames = append(half.Frames, f)
	}
	inc.Threads = []triage.Thread{{Kernel: half, KernelInfo: &dump.KernelThread{StackLimit: stackLimit, StackBase: stackBase}}}
	return inc
}

// faultAt makes frame i the fault.
func faultAt(inc *triage.Incident, i int) *triage.Incident {
	f := &inc.Threads[0].Kernel.Frames[i]
	inc.BugCheck.Fault = triage.Fault{Source: dump.ContextParameter, Parameter: 3, At: f, Index: i}
	return inc
}

// A framework that faults is blamed when no driver called it, and never surely.
func TestFramework(t *testing.T) {
	v := Of(faultAt(scene(0xd1, nil, wdfBase+0x100, acmeBase+0x200, ntBase+0x300), 0), nil)
	if b := v.Blame; b.Name != "acme.sys" || b.Step != "frame" || b.Index != 1 {
		t.Errorf("with a driver on the stack: %+v", b)
	}
	v = Of(faultAt(scene(0xd1, nil, wdfBase+0x100, ntBase+0x300), 0), nil)
	if b := v.Blame; b.Name != "Wdf01000.sys" || b.Step != "context" || b.Confidence != "medium" {
		t.Errorf("alone: %+v", b)
	}
}

// The driver that the kernel named, when nothing better is known.
func TestBrokenDriver(t *testing.T) {
	inc := scene(0x50, nil, ntBase+0x100, ntBase+0x300)
	inc.BugCheck.BrokenDriver = `\SystemRoot\System32\drivers\ACME.sys`
	if b := Of(inc, nil).Blame; b.Step != "broken_driver" || b.Module == nil || b.Module.Name() != "acme.sys" || b.Confidence != "high" {
		t.Errorf("%+v", b)
	}
}

// irpTo builds an IRP at a device whose driver object has this start and name.
func irpTo(start uint64, name string) ranges {
	le := binary.LittleEndian
	irp, device, driver := make([]byte, 0x120), make([]byte, 0x40), make([]byte, 0x60)
	le.PutUint16(irp, typeIRP)
	le.PutUint64(irp[0xb8:], 0xffff900000000000+0xd0)
	le.PutUint64(irp[0xd0+0x28:], 0xffff910000000000)
	le.PutUint16(device, typeDevice)
	le.PutUint64(device[8:], 0xffff920000000000)
	le.PutUint16(driver, typeDriver)
	le.PutUint64(driver[0x18:], start)
	text := []byte{}
	for _, c := range name {
		text = append(text, byte(c), 0)
	}
	le.PutUint16(driver[0x38:], uint16(len(text)))
	le.PutUint64(driver[0x40:], 0xffff930000000000)
	return ranges{0xffff900000000000: irp, 0xffff910000000000: device, 0xffff920000000000: driver, 0xffff930000000000: text}
}

func TestIRPDriver(t *testing.T) {
	for name, x := range map[string]struct {
		start uint64
		want  string
	}{
		"loaded":                {acmeBase, "acme.sys"},
		"inside another module": {acmeBase + 0x1000, `\Driver\acmebus`},
		"not in the list":       {0xfffff80099990000, `\Driver\acmebus`},
	} {
		inc := scene(0x9f, irpTo(x.start, `\Driver\acmebus`), ntBase+0x100, ntBase+0x300)
		inc.BugCheck.Parameters = [4]uint64{3, 0, 0, 0xffff900000000000}
		if b := Of(inc, nil).Blame; b.Name != x.want || b.Step != "parameter" || b.Parameter != 3 {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// Drivers whose addresses lie on the stack: a call before the address tells a return
// address from a number that looks like one.
func TestSearchStack(t *testing.T) {
	le := binary.LittleEndian
	for name, x := range map[string]struct {
		code []byte // that ends at the address
		want CallState
	}{
		"call rel32":       {[]byte{0x90, 0x90, 0xe8, 1, 2, 3, 4}, CallFound},
		"call [rip+x]":     {[]byte{0x90, 0xff, 0x15, 1, 2, 3, 4}, CallFound},
		"call rax":         {[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, CallFound},
		"no call":          {[]byte{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, NoCall},
		"jmp [rip+x]":      {[]byte{0x90, 0xff, 0x25, 1, 2, 3, 4}, NoCall},
		"code not at hand": {nil, NotKnown},
	} {
		stack := make([]byte, 0x1000)
		le.PutUint64(stack[0x200:], acmeBase+0x507)
		mem := ranges{stackLimit: stack}
		if x.code != nil {
			mem[acmeBase+0x500] = x.code
		}
		v := Of(scene(0x50, mem, ntBase+0x100, ntBase+0x300), nil)
		if len(v.Drivers) != 1 || v.Drivers[0].AfterCall != x.want || v.Drivers[0].Frames != 0 || v.Drivers[0].Address != acmeBase+0x507 {
			t.Errorf("%s: %+v", name, v.Drivers)
			continue
		}
		step := map[bool]string{true: "kernel", false: "scan"}[x.want == NoCall]
		if v.Blame.Step != step || v.Blame.Confidence != "low" {
			t.Errorf("%s: %+v", name, v.Blame)
		}
	}
}

// 32-bit kernels: pointers have 4 bytes, parameters that many.
func TestX86(t *testing.T) {
	inc := scene(0x9f, nil, ntBase)
	inc.System.Arch = dump.X86
	le := binary.LittleEndian
	driver, device := make([]byte, 0x24), make([]byte, 0x10)
	le.PutUint16(device, typeDevice)
	le.PutUint32(device[8:], 0x82000000)
	le.PutUint16(driver, typeDriver)
	le.PutUint32(driver[0x0c:], 0xf7000000)
	le.PutUint16(driver[0x1c:], 10)
	le.PutUint32(driver[0x20:], 0x83000000)
	mods := []*triage.Module{kernelModule("old.sys", 0xf7000000)}
	inc.KernelSpace = triage.NewView(ranges{0x81000000: device, 0x82000000: driver, 0x83000000: []byte("a\x00c\x00m\x00e\x00!\x00")}, nil, mods)
	inc.BugCheck.Parameters = [4]uint64{1, 0xffffffff81000000}
	v := Of(inc, nil)
	if p := v.Parameters[1]; p.Value != 0x81000000 || p.Name != "acme!" || p.Missing {
		t.Errorf("%+v", p)
	}
	if v.Blame.Name != "old.sys" || v.Blame.Step != "parameter" {
		t.Errorf("%+v", v.Blame)
	}
}
