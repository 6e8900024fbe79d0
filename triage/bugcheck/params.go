package bugcheck

import (
	"strings"

	"dumptriage/dump"
	"dumptriage/report/codes"
)

// parameters says what the four parameters mean and name.
func (j *judge) parameters() {
	values := j.bc.Parameters
	for i := range values {
		values[i] = j.inc.System.Arch.Narrow(values[i])
	}
	params, unverified := codes.BugCheckParams(j.bc.Code, values)
	j.v.Unverified = unverified
	j.v.Documented = codes.BugCheckDocumented(j.bc.Code)
	for i, p := range params {
		q := Parameter{Value: values[i], Meaning: p.Meaning, Kind: p.Kind}
		if v, ok := codes.BugCheckValueOf(j.bc.Code, i, values); ok {
			q.Name = v.Text
		}
		if p.Kind == codes.KindSub || p.Kind == codes.KindFastFail {
			j.v.Sub = i
		}
		j.name(&q, i)
		j.v.Parameters[i] = q
	}
}

// name fills in what a parameter's value stands for, by its kind.
func (j *judge) name(p *Parameter, i int) {
	switch p.Kind {
	case codes.KindStatus:
		p.Name = codes.Exception(uint32(p.Value))
	case codes.KindFastFail:
		p.Name = codes.FastFail(uint32(p.Value))
	case codes.KindIRQL:
		p.Name = codes.IRQL(p.Value, j.inc.System.Arch.PointerSize())
	case codes.KindTag:
		p.Name = poolTag(uint32(p.Value))
	case codes.KindKASAN:
		p.Name = codes.KASAN(p.Value)
	case codes.KindAddress:
		p.Region = RegionOf(j.inc.System.Arch, p.Value)
	}
	p.Unnamed = p.Name == "" && (p.Kind == codes.KindSub || p.Kind == codes.KindFastFail || p.Kind == codes.KindValue)
	if !j.header {
		j.follow(p, i)
	}
}

// follow names what a parameter points to.
func (j *judge) follow(p *Parameter, i int) {
	switch p.Kind {
	case codes.KindAddress, codes.KindCode:
		j.nameAddress(p)
	case codes.KindContext, codes.KindTrap:
		f := &j.bc.Fault
		p.Missing = p.Value != 0 && f.Parameter == i && f.Missing
	case codes.KindRecord:
		p.Missing = !j.holds(p.Value, 1)
	case codes.KindText:
		p.Text, p.Missing = j.text(p.Value)
	case codes.KindUnicode:
		p.Text, p.Missing = j.unicodeShown(p.Value, j.leads)
	case codes.KindThread, codes.KindProcess:
		j.nameObject(p)
	case codes.KindDevice, codes.KindDriver:
		p.Name, p.Missing = j.driverNameOf(p.Value, p.Kind)
	case codes.KindBoot:
		if j.typed(p.Value, 2, typeDevice) != nil {
			p.Name, p.Missing = j.driverNameOf(p.Value, codes.KindDevice)
		} else { // a length, which is even
			p.Text, p.Missing = j.unicodeShown(p.Value, never)
		}
	case codes.KindIRP, codes.KindWHEA:
		p.Missing = p.Value != 0 && !j.holds(p.Value, 1)
	}
	if p.Value == 0 {
		p.Missing = false // there is nothing that it could point to
	}
}

// nameAddress names an address in a module; others, in pool or on stacks, have no
// names.
func (j *judge) nameAddress(p *Parameter) {
	if m := j.view.Module(p.Value); m != nil {
		f := j.view.Name(p.Value)
		p.Frame = &f
	}
}

// holds reports whether the dump has n bytes at va.
func (j *judge) holds(va uint64, n int) bool { return len(j.read(va, n)) == n }

// read returns the bytes that the dump has at va, at most n.
func (j *judge) read(va uint64, n int) []byte {
	b := make([]byte, n)
	got, _ := j.view.ReadAt(b, va)
	return b[:max(0, min(got, n))]
}

// poolTag is a pool tag as drivers write it, "" when it is not of printable
// characters.
func poolTag(v uint32) string {
	b := []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}
	for _, c := range b {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return string(b)
}

// readable drops what is no text.
func readable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return -1
		}
		return r
	}, s)
}

// nameObject names the process or thread that a parameter points to, if it is one
// that the dump lists.
func (j *judge) nameObject(p *Parameter) {
	if p.Kind == codes.KindThread {
		for i := range j.inc.Threads {
			if k := j.inc.Threads[i].KernelInfo; k != nil && k.ETHREAD == p.Value {
				p.Name = threadName(&j.inc.Threads[i].Thread, k)
				return
			}
		}
		p.Missing = !j.holds(p.Value, 1)
		return
	}
	for i := range j.inc.Processes {
		if j.inc.Processes[i].EPROCESS == p.Value {
			p.Name = j.inc.Processes[i].Name
			return
		}
	}
	if j.inc.Process.EPROCESS == p.Value && p.Value != 0 {
		p.Name = j.inc.Process.Name
		return
	}
	p.Missing = !j.holds(p.Value, 1)
}

func threadName(t *dump.Thread, k *dump.KernelThread) string {
	return cid(k.PID, t.ID)
}
