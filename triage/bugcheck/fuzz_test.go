package bugcheck

import (
	"encoding/binary"
	"testing"

	"dumptriage/triage"
)

// FuzzPointers lets parameters of bugchecks that are followed point into any bytes:
// power IRPs and their lists, devices, the blocks of watchdogs.
func FuzzPointers(f *testing.F) {
	le := binary.LittleEndian
	const base = 0xffff900000000000
	block := make([]byte, 0x400)
	le.PutUint16(block, power9F)
	le.PutUint64(block[8:], base+0x100)
	le.PutUint64(block[0x10:], base+0x110)
	for _, head := range []int{0x100, 0x110} { // lists of one entry
		entry := 0x100 + 2*(head-0xf0)
		le.PutUint64(block[head:], base+uint64(entry))
		le.PutUint64(block[head+8:], base+uint64(entry))
		le.PutUint64(block[entry:], base+uint64(head))
		le.PutUint64(block[entry+8:], base+uint64(head))
		le.PutUint64(block[entry+0x10:], base)
	}
	f.Add(uint8(0), block)
	dpc := le.AppendUint32(nil, watchdogSignature)
	f.Add(uint8(2), append(dpc, 1, 0, 0x10, 0, 0x20, 0, 0, 0, 8, 0, 0, 0))
	f.Add(uint8(1), irpTo(acmeBase, `\Driver\acme`)[base])
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		cases := []struct {
			code   uint32
			values [4]uint64
		}{
			{0x9f, [4]uint64{3, base, base, base}}, {0x9f, [4]uint64{4, 300, base, base}}, {0x133, [4]uint64{1, 0x1e00, base}},
			{0x9f, [4]uint64{6, base, 1}}, {0x101, [4]uint64{0x18, 0, base, 1}}, {0x124, [4]uint64{0, base}},
		}
		c := cases[int(kind)%len(cases)]
		inc := scene(c.code, ranges{base: b}, ntBase+0x100, ntBase+0x300)
		inc.BugCheck.Parameters = c.values
		inc.BugCheck.Processors = []triage.Processor{{PRCB: base, Crashed: true}}
		v := Of(inc, nil)
		if p := v.Power; p != nil && (len(p.IRPs) > maxPowerList || len(p.Workers) > maxPowerList || len(p.Devices) > maxPowerList) {
			t.Errorf("%+v", p)
		}
		if n := v.Device; n != nil && len(n.Stack) > maxDeviceTree {
			t.Errorf("%d devices", len(n.Stack))
		}
	})
}
