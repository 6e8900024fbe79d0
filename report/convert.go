package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dumptriage/dump"
	"dumptriage/symbols"
	"dumptriage/triage"
)

// hexer writes addresses with the number of digits of one architecture.
type hexer int

// hexFor returns the writer of addresses for a dump; an unknown architecture
// gets the wide form, which loses nothing.
func hexFor(arch dump.Arch) hexer { return hexer(2 * arch.PointerSize()) }

// addr formats an address: "0x" and at least the pointer's number of digits.
func (h hexer) addr(v uint64) string {
	var buf [18]byte
	b := append(buf[:0], '0', 'x')
	digits := 1
	for x := v >> 4; x != 0; x >>= 4 {
		digits++
	}
	for range int(h) - digits {
		b = append(b, '0')
	}
	return string(strconv.AppendUint(b, v, 16))
}

// known formats an address for which 0 means not known.
func (h hexer) known(v uint64) string {
	if v == 0 {
		return ""
	}
	return h.addr(v)
}

// hex32 formats a 32-bit code.
func hex32(v uint32) string { return hexer(8).addr(uint64(v)) }

func ptr[T any](v T) *T { return &v }

// knownCount returns a pointer to n unless it is the zero that means not known.
func knownCount(n uint32) *uint32 {
	if n == 0 {
		return nil
	}
	return &n
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func errorsJSON(errs []*dump.Error) []ErrorJSON {
	out := make([]ErrorJSON, 0, len(errs))
	for _, e := range errs {
		if e == nil {
			continue
		}
		j := ErrorJSON{Code: string(e.Code), Severity: "error", File: e.File, Stream: e.Stream, Message: e.Msg}
		if e.Warning {
			j.Severity = "warning"
		}
		if e.Offset >= 0 {
			j.Offset = &e.Offset
		}
		if e.Err != nil {
			j.Message = strings.TrimPrefix(j.Message+": "+e.Err.Error(), ": ")
		}
		out = append(out, j)
	}
	return out
}

func inputsJSON(in []triage.Input) []InputJSON {
	out := make([]InputJSON, 0, len(in))
	for _, i := range in {
		j := InputJSON{Path: i.Path, Member: i.Member, SHA256: i.SHA256, Format: string(i.Format), DumpType: i.Kind, Flags: i.Flags, Comments: i.Comments}
		if i.Size > 0 || i.Format != "" {
			j.Size = &i.Size
		}
		out = append(out, j)
	}
	return out
}

func processJSON(inc *triage.Incident) *ProcessJSON {
	j := ProcessJSON{inc.Process.Name, inc.Process.CommandLine, emulationJSON(inc.Emulation)}
	if j == (ProcessJSON{}) {
		return nil
	}
	return &j
}

func systemJSON(s *dump.System) *SystemJSON {
	if s == nil || s.Arch == dump.ArchUnknown {
		return nil
	}
	return &SystemJSON{OS: "Windows NT", OSVer: osVersion(s), CPUArch: s.Arch.String(), CPUInfo: cpuInfo(s),
		CPUCount: knownCount(s.CPUCount), NTVersion: s.NTVersion, UptimeSeconds: s.Uptime.Seconds()}
}

func osVersion(s *dump.System) string {
	if s.Major == 0 && s.Build == 0 {
		return ""
	}
	v := fmt.Sprintf("%d.%d.%d", s.Major, s.Minor, s.Build)
	if s.ServicePack != "" {
		v += " " + s.ServicePack
	}
	return v
}

// cpuInfo describes the processor as rust-minidump does: "GenuineIntel family 6
// model 58 stepping 9".
func cpuInfo(s *dump.System) string {
	if s.CPUFamily == 0 {
		return s.CPUVendor
	}
	return strings.TrimSpace(fmt.Sprintf("%s family %d model %d stepping %d", s.CPUVendor, s.CPUFamily, s.CPUModel, s.CPUStepping))
}

func moduleJSON(m *triage.Module, h hexer) ModuleJSON {
	j := ModuleJSON{
		BaseAddr: h.addr(m.Base), EndAddr: h.addr(m.End()), Filename: m.Name(), CodeID: codeID(m.Module),
		DebugFile: dump.BaseName(m.CodeView.PDB), DebugID: m.CodeView.DebugID(), Version: version(m.Version), Size: m.Size, Kind: "user",
		MissingSymbols: m.UsedInStack && m.Symbols != symbols.DebugLoaded && !m.Named, LoadedSymbols: m.Symbols == symbols.DebugLoaded || m.Named,
		SymbolMismatch: m.Symbols == symbols.DebugMismatch, Unlisted: m.Unlisted, Mapped: m.Mapped,
	}
	if m.TimeDateStamp != 0 {
		j.Timestamp = hex32(m.TimeDateStamp)
	}
	if m.Kernel {
		j.Kind = "kernel"
	}
	return j
}

// codeID is the symbol-store key of an image: time stamp, then size.
func codeID(m *dump.Module) string {
	if m.TimeDateStamp == 0 {
		return ""
	}
	return fmt.Sprintf("%08X%x", m.TimeDateStamp, m.Size)
}

func version(v dump.FileVersion) string {
	if v == (dump.FileVersion{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d.%d", v[0], v[1], v[2], v[3])
}

func modulesJSON(in []*triage.Module, h hexer) []ModuleJSON {
	out := make([]ModuleJSON, 0, len(in))
	for _, m := range in {
		if m != nil && m.Module != nil {
			out = append(out, moduleJSON(m, h))
		}
	}
	return out
}

func unloadedJSON(in []dump.Module, h hexer) []UnloadedJSON {
	var out []UnloadedJSON
	for i := range in {
		out = append(out, UnloadedJSON{h.addr(in[i].Base), h.addr(in[i].End()), in[i].Name(), timeText(in[i].UnloadedAt)})
	}
	return out
}

func handlesJSON(in []dump.Handle, h hexer) []HandleJSON {
	var out []HandleJSON
	for i := range in {
		out = append(out, handleJSON(&in[i], h))
	}
	return out
}

func handleJSON(in *dump.Handle, h hexer) HandleJSON {
	j := HandleJSON{Handle: h.addr(in.Value), TypeName: in.Type, ObjectName: in.Name, Access: hex32(in.Access), Object: h.known(in.Object)}
	j.setState(in.State)
	return j
}

// setState adds what the object's records say.
func (j *HandleJSON) setState(s *dump.ObjectState) {
	if s == nil {
		return
	}
	j.State, j.ProcessID = handleState(s), s.ProcessID
	if s.Thread != nil {
		j.ProcessID, j.ThreadID = &s.Thread.Process, &s.Thread.Thread
	}
	if s.Owner != nil {
		j.OwnerThreadID = &s.Owner.Thread
	}
}

func crashJSON(inc *triage.Incident, h hexer) *CrashJSON {
	var j CrashJSON
	if inc.Crashing >= 0 && inc.Crashing < len(inc.Threads) {
		j.CrashingThread = &inc.Crashing
	}
	c := inc.Crash
	if c == nil {
		if j.CrashingThread == nil {
			return nil
		}
		return &j
	}
	j.Type, j.Code = CrashType(&c.Exception), hex32(c.Code)
	j.Address = h.addr(CrashAddress(&c.Exception, inc.System.Arch))
	j.Assertion = c.Assertion
	j.Parameters, j.NonContinuable, j.Record = parametersJSON(c.Parameters, h), c.Flags&1 != 0, h.known(c.Record)
	if a := c.Adjusted; a != nil {
		j.AdjustedAddress = &AdjustedJSON{Kind: a.Kind}
		if a.Kind == "null-pointer" {
			j.AdjustedAddress.Offset = h.addr(a.Offset)
		} else {
			j.AdjustedAddress.Address = h.addr(a.Address)
		}
	}
	if in := c.Instruction; in != nil {
		j.Instruction = in.Text
		for _, a := range in.Accesses {
			acc := AccessJSON{Size: a.Size, AccessType: "read", Alignment: a.Align}
			switch {
			case a.Read:
				acc.AccessType = "readwrite"
			case a.Write:
				acc.AccessType = "write"
			}
			if a.Known {
				acc.Address = h.addr(a.Address)
			}
			j.MemoryAccesses = append(j.MemoryAccesses, acc)
		}
		if in.HasTarget {
			j.PointerUpdate = &PointerUpdateJSON{Address: h.addr(in.Target)}
		}
	}
	return &j
}

func pairingJSON(p *triage.Pairing) *PairingJSON {
	if p == nil {
		return nil
	}
	return &PairingJSON{User: p.User, Kernel: p.Kernel, How: p.How, PID: knownCount(p.PID), Warnings: p.Warnings}
}

func missingJSON(missing []symbols.Missing) []MissingImgJSON {
	var out []MissingImgJSON
	for _, m := range missing {
		if m.Module != nil {
			out = append(out, MissingImgJSON{m.Module.Name(), m.Key, m.Tried, m.Reason})
		}
	}
	return out
}
