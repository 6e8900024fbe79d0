package report

import (
	"fmt"
	"strings"

	"dumptriage/triage/bugcheck"
)

func hardwareJSON(r *bugcheck.ErrorRecord, h hexer) *HardwareErrorJSON {
	if r == nil {
		return nil
	}
	j := &HardwareErrorJSON{Severity: severity(r.Severity), Notify: r.Notify, Timestamp: timeText(r.Timestamp), Truncated: r.Truncated}
	for i := range r.Sections {
		s := &r.Sections[i]
		k := ErrorSectionJSON{GUID: guidText(s.GUID), Type: s.Type, Severity: severity(s.Severity), Primary: s.Primary, FRU: s.FRU, Text: sectionWords(s)}
		if m := s.MCA; m != nil {
			k.Status, k.Bank, k.CPU = h.addr(m.Status), index(int(m.Bank)), index(int(m.Processor))
			if m.Status&bugcheck.MCIAddressValid != 0 {
				k.Address = h.addr(m.Address)
			}
		}
		if m := s.Memory; m != nil && m.HasAddress {
			k.Address = h.addr(m.Address)
		}
		j.Sections = append(j.Sections, k)
	}
	return j
}

func severity(s bugcheck.Severity) string {
	switch s {
	case bugcheck.Recoverable:
		return "recoverable"
	case bugcheck.Fatal:
		return "fatal"
	case bugcheck.Corrected:
		return "corrected"
	case bugcheck.Informational:
		return "informational"
	}
	return fmt.Sprintf("%d", uint32(s))
}

// sectionWords says what a section of an error record tells.
func sectionWords(s *bugcheck.ErrorSection) string {
	switch {
	case s.MCA != nil:
		return machineCheckWords(s.MCA)
	case s.Processor != nil:
		return processorWords(s.Processor)
	case s.Memory != nil:
		return memoryErrorWords(s.Memory)
	case s.PCIe != nil:
		return pcieWords(s.PCIe)
	}
	return ""
}

func machineCheckWords(m *bugcheck.MachineCheck) string {
	parts := []string{fmt.Sprintf("processor %d, bank %d", m.Processor, m.Bank), mcaCode(uint16(m.Status))}
	for _, b := range []struct {
		bit  uint64
		word string
	}{{bugcheck.MCIUncorrected, "not corrected"}, {bugcheck.MCIContextCorrupt, "the processor's state is lost"}, {bugcheck.MCIOverflow, "more errors were lost"}} {
		if m.Status&b.bit != 0 {
			parts = append(parts, b.word)
		}
	}
	return strings.Join(parts, ", ")
}

// mcaCode names the machine check error code in the low half of MCi_STATUS, as the
// processors' manuals class it; bit 12 only tells how corrected errors are counted.
func mcaCode(code uint16) string {
	code &^= 1 << 12
	levels := [4]string{"level 0", "level 1", "level 2", "level unknown"}
	switch {
	case code == 0:
		return "no error"
	case code == 1:
		return "unclassified error"
	case code == 2:
		return "microcode ROM parity"
	case code == 3:
		return "external error"
	case code == 4:
		return "redundancy check"
	case code == 5:
		return "internal parity"
	case code == 0x400:
		return "internal timer"
	case code>>4 == 0 && code&0xc == 0xc:
		return "cache hierarchy, " + levels[code&3]
	case code>>4 == 1:
		return "TLB, " + levels[code&3]
	case code>>7 == 1:
		return "memory controller"
	case code>>8 == 1:
		return "cache, " + levels[code&3]
	case code>>11 == 1:
		return "bus or interconnect, " + levels[code&3]
	case code>>10 == 1:
		return "internal error"
	}
	return fmt.Sprintf("error code %#x", code)
}

var processorErrors = map[uint8]string{1: "cache", 2: "TLB", 4: "bus", 8: "micro-architecture"}

func processorWords(p *bugcheck.ProcessorError) string {
	var parts []string
	if p.Has&bugcheck.HasProcessorError != 0 && processorErrors[p.Error] != "" {
		parts = append(parts, processorErrors[p.Error]+" error")
	}
	if p.Has&bugcheck.HasLevel != 0 {
		parts = append(parts, fmt.Sprintf("level %d", p.Level))
	}
	if p.Has&bugcheck.HasProcessorID != 0 {
		parts = append(parts, fmt.Sprintf("processor id %d", p.ID))
	}
	if p.Has&bugcheck.HasProcessorIP != 0 {
		parts = append(parts, fmt.Sprintf("at %#x", p.IP))
	}
	return strings.Join(parts, ", ")
}

// memoryErrors are the types of the UEFI specification, N.2.5.
var memoryErrors = []string{"unknown", "no error", "single-bit ECC", "multi-bit ECC", "single-symbol chipkill", "multi-symbol chipkill", "master abort",
	"target abort", "parity", "watchdog timeout", "invalid address", "mirror broken", "memory sparing", "corrected scrub", "uncorrected scrub", "memory map-out"}

func memoryErrorWords(m *bugcheck.MemoryError) string {
	var parts []string
	if m.HasType && int(m.Type) < len(memoryErrors) {
		parts = append(parts, memoryErrors[m.Type])
	}
	for _, x := range []struct {
		has  bool
		name string
		v    uint16
	}{{m.HasNode, "node", m.Node}, {m.HasCard, "card", m.Card}, {m.HasModule, "module", m.Module}} {
		if x.has {
			parts = append(parts, fmt.Sprintf("%s %d", x.name, x.v))
		}
	}
	if m.HasAddress {
		parts = append(parts, fmt.Sprintf("physical address %#x", m.Address))
	}
	return strings.Join(parts, ", ")
}

func pcieWords(p *bugcheck.PCIeError) string {
	if !p.HasDevice {
		return ""
	}
	return fmt.Sprintf("device %04x:%02x:%02x.%d, vendor %04x, device id %04x, class %06x", p.Segment, p.Bus, p.Slot, p.Function, p.Vendor, p.Device, p.Class)
}
