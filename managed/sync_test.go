package managed

import "testing"

const (
	syncVA   = 0x80_0000 // the table of sync blocks
	blocksVA = 0x81_0000
	lockedVA = 0x82_0000 // objects with sync blocks
)

// syncBlocks puts locks into the process, as measured in a dump of .NET 10: the entry,
// the word before its object, and the lock. Lock 2 is held by managed thread 7, which
// is thread 130h.
func syncBlocks(mem memory, r *Runtime) []Thread {
	r.l.types["SyncTableEntry"] = typeLayout{size: 16, fields: map[string]uint64{"SyncBlock": 0}}
	r.l.types["SyncBlock"] = typeLayout{fields: map[string]uint64{"InteropInfo": 0x38}}
	r.l.globals["SyncTableEntries"] = global{value: threadsVA + 0x40}
	if mem[threadsVA] == nil {
		mem[threadsVA] = make([]byte, 0x100)
	}
	put(mem[threadsVA], 0x40, syncVA)
	mem[syncVA], mem[blocksVA], mem[lockedVA] = make([]byte, 16*8), make([]byte, 0x400), make([]byte, 0x400)
	for i := range 4 {
		put(mem[syncVA], 16*i, blocksVA+uint64(i)*0x40, lockedVA+8+uint64(i)*0x40)
		put32(mem[lockedVA], 0x40*i+4, 0x08000000|uint32(i))
		put32(mem[blocksVA], 0x40*i+0x1c, 0x80000000|uint32(i))
		put(mem[blocksVA], 0x40*i+0x20, 0x170+4*uint64(i))
	}
	b := mem[blocksVA]
	put(b, 0x80, 1<<32|0x41, 7, 0x130) // recursion 1; held, a thread waits; both ids
	return []Thread{{ID: 7, OSID: 0x130}, {ID: 9, OSID: 0x134}}
}

func TestMonitors(t *testing.T) {
	const at = 0x80 // of lock 2
	owned := Monitor{Object: lockedVA + 8 + 0x80, Event: 0x178, OwnerOSID: 0x130, OwnerID: 7, Recursion: 1}
	free := owned
	free.OwnerOSID, free.OwnerID, free.Recursion = 0, 0, 0
	for _, c := range []struct {
		name   string
		change func(mem memory, r *Runtime)
		n      int
		want   Monitor // of lock 2, when it is there
	}{
		{"as it is", func(memory, *Runtime) {}, 3, owned},
		{"free", func(m memory, _ *Runtime) { put32(m[blocksVA], at, 0x40) }, 3, free},
		{"the ids of two threads", func(m memory, _ *Runtime) { put32(m[blocksVA], at+0x10, 0x134) }, 2, Monitor{}},
		{"the id of no thread", func(m memory, _ *Runtime) { put32(m[blocksVA], at+8, 5) }, 2, Monitor{}},
		{"another index", func(m memory, _ *Runtime) { put32(m[blocksVA], at+0x1c, 3) }, 2, Monitor{}},
		{"an object of another", func(m memory, _ *Runtime) { put32(m[lockedVA], at+4, 0x08000003) }, 2, Monitor{}},
		{"an object with a hash", func(m memory, _ *Runtime) { put32(m[lockedVA], at+4, 0x0c000002) }, 2, Monitor{}},
		{"an entry that is free", func(m memory, _ *Runtime) { put(m[syncVA], 16*2, 0, 0x15) }, 2, Monitor{}},
		{"a block that is missing", func(m memory, _ *Runtime) { m[blocksVA] = m[blocksVA][:at] }, 1, Monitor{}},
		{"another layout", func(_ memory, r *Runtime) { r.l.types["SyncBlock"].fields["InteropInfo"] = 0x30 }, 0, Monitor{}},
		{"no layout", func(_ memory, r *Runtime) { delete(r.l.types, "SyncBlock") }, 0, Monitor{}},
		{"no table", func(m memory, _ *Runtime) { delete(m, syncVA) }, 0, Monitor{}},
		{"a table at the end of memory", func(m memory, _ *Runtime) { put(m[threadsVA], 0x40, ^uint64(0)-20) }, 0, Monitor{}},
	} {
		mem, r := process(t, 1)
		all := syncBlocks(mem, r)
		c.change(mem, r)
		got := r.Monitors(all)
		if len(got) != c.n {
			t.Errorf("%s: %+v, want %d", c.name, got, c.n)
			continue
		}
		for _, m := range got {
			if m.Type = ""; m.Object == c.want.Object && m != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, m, c.want)
			}
		}
	}
}

func TestSystemThreads(t *testing.T) {
	mem, r := process(t, 1)
	mem[threadsVA] = make([]byte, 0x1000)
	if f, s := r.SystemThreads(); f != 0 || s != 0 {
		t.Errorf("without globals: %d, %d", f, s)
	}
	r.l.globals["FinalizerThread"], r.l.globals["GCThread"] = global{value: threadsVA + 0x40}, global{value: threadsVA + 0x48}
	put(mem[threadsVA], 0x40, threadsVA+0x100, 0)
	put32(mem[threadsVA], 0x100+304, 0x114)
	if f, s := r.SystemThreads(); f != 0x114 || s != 0 {
		t.Errorf("%#x, %#x", f, s)
	}
	put(mem[threadsVA], 0x48, 0x9999_0000) // not in the dump
	if f, s := r.SystemThreads(); f != 0x114 || s != 0 {
		t.Errorf("a thread that is missing: %#x, %#x", f, s)
	}
}
