// Package bugcheck says what a kernel dump's bugcheck means: its code and
// parameters, where the fault was, which driver is to blame and how surely, and
// what hardware and power records in the dump tell.
//
// Names and meanings are tables of package codes, restated from the public Bug
// Check Code Reference; who is never to blame and how far each step of the ladder
// is trusted is data too, in blame.rules. Layouts of kernel objects are those of
// the public symbols, of error records those of the UEFI specification, appendix N,
// and of the public ntddk.h. Parameters and all that they lead to come from the
// dump and are trusted no further than the bytes that were read: a pointer that
// leads nowhere is said to, and nothing is followed in a loop.
package bugcheck

import (
	"slices"

	"dumptriage/dump"
	"dumptriage/report/codes"
	"dumptriage/triage"
)

// Verdict is what a bugcheck means. Nothing in it is text for people but names and
// the tables' own words.
type Verdict struct {
	Code uint32
	Name string // "" when the code is not public
	Live bool   // the system went on: a live dump, or a code that marks such dumps only
	// Documented is what the public reference says of the parameters.
	Documented codes.Documentation
	Class      codes.BugCheckClass
	Summary    string // one sentence, "" when the tables have none
	Steps      []string
	Unverified bool // what the parameters mean was not checked against the reference
	Parameters [4]Parameter
	// Sub is the parameter (0 to 3) whose value says what the others mean, -1 none.
	Sub int

	Blame    Blame
	Drivers  []DriverOnStack // of the fault's stack, innermost first
	Unloaded []UnloadedHit

	Hardware *ErrorRecord // of 0x124, nil when the dump does not hold it
	IRPs     []IRP        // that parameters point to
	Device   *DeviceNode  // of the device object that a parameter of 0x9F points to
	Power    *PowerTriage // of 0x9F, nil when the dump does not hold it
	Profile  *Profile     // of 0x133, nil when its block is not in the dump
	Hung     *HungCPU     // of 0x101
	Stack    *StackUse    // of a double fault, nil when it is not known
	Blobs    []Blob
	Lacking  []*triage.Module // on the stack, their images not found
}

// Parameter is one parameter of a bugcheck.
type Parameter struct {
	Value   uint64
	Meaning string // "" when nothing is known
	Kind    codes.ParamKind
	Name    string        // of the value or of what it points to: a status, a driver, a process
	Text    string        // that it points to
	Frame   *triage.Frame // what an address names, nil when it is in no module
	Missing bool          // it must point to something, and the dump holds nothing there
	Region  Region        // of an address of data
	Unnamed bool          // it must be one of a few values, and is none of those that the reference names
}

// Blob is a record of secondary data.
type Blob struct {
	GUID        [16]byte
	Name, Holds string // "" when the GUID is not known
	Size        int64
}

// UnloadedHit says that an address lies where a driver had been.
type UnloadedHit struct {
	Module    *dump.Module
	Address   uint64
	Parameter int // that holds the address, -1 when it is the frame's
	Frame     int // in the thread's kernel half, -1
}

// judge gathers a verdict.
type judge struct {
	inc    *triage.Incident
	bc     *triage.BugCheck
	view   *triage.View
	rules  *Rules
	frames []triage.Frame // of the crashing thread's kernel half
	header bool           // there is no more than the dump's header
	v      *Verdict
}

// Of judges the bugcheck of an incident; nil when it has none. Nil rules are the
// built-in ones.
func Of(inc *triage.Incident, r *Rules) *Verdict {
	if inc.BugCheck == nil {
		return nil
	}
	if r == nil {
		r = builtIn()
	}
	j := &judge{inc: inc, bc: inc.BugCheck, view: inc.KernelSpace, rules: r, v: &Verdict{Code: inc.BugCheck.Code, Sub: -1}}
	if i := inc.Crashing; i >= 0 && i < len(inc.Threads) && inc.Threads[i].Kernel != nil {
		j.frames = inc.Threads[i].Kernel.Frames
	}
	j.v.Name, _, j.v.Live = codes.BugCheck(j.bc.Code)
	j.v.Live = j.v.Live || j.bc.Live
	text := codes.BugCheckTextOf(j.bc.Code, inc.System.Arch.Narrow(j.bc.Parameters[0]))
	j.v.Class, j.v.Summary, j.v.Steps = text.Class, text.Summary, text.Steps
	j.parameters()
	j.objects()
	j.unloaded()
	j.drivers()
	j.stackUse()
	j.blame()
	j.v.Lacking = j.lacking()
	j.v.Blobs = blobs(j.bc)
	return j.v
}

// lacking are the modules on the stack, down to the blamed frame and one more, whose
// images were not found; none when the code or a parameter is proof without the stack.
func (j *judge) lacking() []*triage.Module {
	frames := j.frames
	if j.v.Blame.Confidence == confidences[len(confidences)-1] && j.v.Blame.Index < 0 && j.v.Blame.Culprit != CulpritNobody {
		return nil
	}
	if b := &j.v.Blame; b.Frame != nil && b.Index >= 0 && b.Index+2 < len(frames) {
		frames = frames[:b.Index+2]
	}
	return triage.MissingImages(frames)
}

func blobs(bc *triage.BugCheck) (out []Blob) {
	for _, b := range bc.Blobs {
		out = append(out, NameBlob(b.GUID, b.Size))
	}
	return out
}

// NameBlob names a record of secondary data of so many bytes.
func NameBlob(guid [16]byte, size int64) Blob {
	name, holds := codes.SecondaryData(guid)
	return Blob{guid, name, holds, size}
}

// OfHeader says what a dump's header alone tells of its bugcheck: names of the values.
// Nobody is blamed and nothing is followed. Nil for nil.
func OfHeader(bc *triage.BugCheck, arch dump.Arch) *Verdict {
	if bc == nil {
		return nil
	}
	j := &judge{bc: bc, header: true, inc: &triage.Incident{System: dump.System{Arch: arch}}, v: &Verdict{Code: bc.Code, Sub: -1}}
	j.v.Name, _, j.v.Live = codes.BugCheck(bc.Code)
	j.v.Live = j.v.Live || bc.Live
	j.parameters()
	return j.v
}

// faultFrames are the frames from the fault outwards: all of the half when the
// fault is not in it.
func (j *judge) faultFrames() (frames []triage.Frame, first int) {
	if i := j.bc.Fault.Index; i > 0 && i < len(j.frames) {
		return j.frames[i:], i
	}
	return j.frames, 0
}

// unloaded collects the addresses that lie where a driver had been: wild jumps and
// calls into drivers that are gone.
func (j *judge) unloaded() {
	for i := range j.v.Parameters {
		p := &j.v.Parameters[i]
		if p.Frame == nil && (p.Kind == codes.KindCode || p.Kind == codes.KindAddress) {
			j.unloadedAt(p.Value, i, -1)
		}
	}
	for i := range j.frames {
		if f := &j.frames[i]; f.Module == nil && len(f.Unloaded) > 0 {
			j.unloadedAt(f.IP, -1, i)
		}
	}
}

// maxUnloadedHits is more than a reader looks at.
const maxUnloadedHits = 16

func (j *judge) unloadedAt(va uint64, parameter, frame int) {
	if len(j.v.Unloaded) == maxUnloadedHits || j.view.Module(va) != nil {
		return
	}
	i := slices.IndexFunc(j.inc.Unloaded, func(m dump.Module) bool { return m.Kernel && m.Contains(va) })
	if i >= 0 {
		j.v.Unloaded = append(j.v.Unloaded, UnloadedHit{&j.inc.Unloaded[i], va, parameter, frame})
	}
}
