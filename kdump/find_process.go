package kdump

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

func plainCount(n int) string { return strconv.Itoa(n) }

// Ways by which a process or thread was found; dump.Process.How joins those that
// agree with "+".
const (
	foundList = "list"
	foundCID  = "cid_table"
	foundScan = "scan"
)

// Processes returns the processes of a full dump: those of the list of active
// processes in its order, then those that only the table of ids knows, ended ones
// that somebody still holds open or hidden ones. When neither leads to any, the
// memory is searched. Of a triage dump it is the one that it holds.
func (f *File) Processes() []dump.Process {
	if f.full == nil {
		if p := f.Process(); p.EPROCESS != 0 {
			return []dump.Process{*p}
		}
		return nil
	}
	f.full.processesOnce.Do(f.readProcesses)
	return f.full.processes
}

func (f *File) readProcesses() {
	if f.processSize() == 0 {
		return
	}
	l := f.listLayout()
	cid := f.cidTable()
	seen := map[uint64]bool{}
	add := func(va uint64, id uint32, how string) {
		r := f.recordAt(va, f.processSize())
		if seen[va] || r == nil || !f.isProcess(r) || len(f.full.processes) >= f.mostProcesses() {
			return
		}
		seen[va] = true
		p := f.newProcess(r, l.pid)
		p.How = how
		if !p.HasPID && id != 0 {
			p.PID, p.HasPID = id, true
		}
		f.full.processes = append(f.full.processes, p)
	}
	entries, whole := f.listedProcesses(l)
	for _, va := range entries {
		how := foundList
		if _, ok := cid.processes[va]; ok {
			how += "+" + foundCID
		}
		add(va, 0, how)
	}
	listed := len(f.full.processes)
	for _, va := range byID(cid.processes) {
		add(va, cid.processes[va], foundCID)
	}
	if listed == 0 && len(f.full.processes) == 0 {
		for _, va := range f.scanProcesses() {
			add(va, 0, foundScan)
		}
	}
	if f.process != nil && f.isProcess(f.process) { // the current one, whatever the lists say
		add(f.process.va, 0, "current_thread")
	}
	if len(f.full.processes) == 0 {
		f.damage(dump.Errorf(dump.BadRecord, "EPROCESS", "no process was found in the dump"))
	}
	f.judgeProcesses(whole, cid.how != "" && cid.whole)
	f.full.listed.Store(true)
}

// judgeProcesses says of each process whether it has ended, or which of two whole
// registers does not know it. The idle process is in neither.
func (f *File) judgeProcesses(listWhole, tableWhole bool) {
	for i := range f.full.processes {
		p := &f.full.processes[i]
		listed, known := strings.Contains(p.How, foundList), strings.Contains(p.How, foundCID)
		switch {
		case !p.Exited.IsZero():
			p.State = dump.ProcessEnded
		case p.HasPID && !listed && listWhole:
			p.State = dump.ProcessUnlisted
		case p.HasPID && !known && tableWhole:
			p.State = dump.ProcessWithout
		}
	}
}

// ScanProcesses searches memory for processes and returns those that Processes
// lacks: ended ones whose memory nobody took yet, and ones that were hidden from
// both registers. Only an object that no thread waits for can be found.
func (f *File) ScanProcesses() []dump.Process {
	if f.full == nil || f.processSize() == 0 {
		return nil
	}
	known := map[uint64]bool{}
	for i := range f.Processes() {
		known[f.full.processes[i].EPROCESS] = true
	}
	var out []dump.Process
	for _, va := range f.scanProcesses() {
		r := f.recordAt(va, f.processSize())
		if known[va] || r == nil {
			continue
		}
		p := f.newProcess(r, f.listLayout().pid)
		if p.Name == "" || !p.HasPID {
			continue // the remains of one
		}
		p.How, p.State = foundScan, dump.ProcessUnlisted
		if !p.Exited.IsZero() {
			p.State = dump.ProcessEnded
		}
		out = append(out, p)
	}
	return out
}

// listedProcesses walks the list of active processes and reports whether it is
// whole. Some writers store the address of System's own EPROCESS where that of the
// list's head belongs.
func (f *File) listedProcesses(l listLayout) (processes []uint64, whole bool) {
	head := f.processHead()
	if head == 0 || l.links == 0 {
		return nil, false
	}
	var first []uint64
	if f.isProcessAt(head) {
		first = []uint64{head + uint64(l.links)}
		head = first[0]
	}
	w := f.walkList(f.mem, head, f.mostProcesses(), "PsActiveProcessHead")
	if w.err != nil {
		f.damage(w.err)
	}
	return offsetFrom(append(first, w.entries...), l.links), w.err == nil && len(w.entries) > 0
}

// byID returns the objects of a map in the order of their ids.
func byID(objects map[uint64]uint32) []uint64 {
	return slices.SortedFunc(maps.Keys(objects), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(objects[a], objects[b]), cmp.Compare(a, b))
	})
}

// newProcess decodes an EPROCESS.
func (f *File) newProcess(r *record, pid int) dump.Process {
	p := dump.Process{EPROCESS: r.va}
	k, row, lists := &f.kd.process, f.offsets(), f.lists()
	if v, ok := r.pointer(k.dirBase); ok {
		p.DirBase = f.pageTableRoot(v)
	}
	if v, ok := r.pointer(lists.userDirBase); ok && v > 1 {
		p.UserDirBase = f.pageTableRoot(v)
	}
	if v, ok := r.pointer(k.peb); ok && !kernelAddress(r.ptr, v) {
		p.PEB = v
	}
	if v, ok := r.pointer(k.parent); ok && v < maxID && v&3 == 0 {
		p.ParentPID = uint32(v)
	}
	if v, ok := r.pointer(pid); ok && v != 0 && v < maxID && v&3 == 0 {
		p.PID, p.HasPID = uint32(v), true
	}
	p.Name = imageName(r, row.imageName, k.parent)
	p.Created = f.believableTime(r, row.processCreated)
	p.Exited = f.believableTime(r, lists.processExit)
	if v := f.kernelPointer(r, lists.wow64); v != 0 {
		p.Wow64 = true
	}
	if f.full != nil {
		f.describeProcess(&p, r)
	}
	return p
}

// describeProcess adds what lies outside the EPROCESS.
func (f *File) describeProcess(p *dump.Process, r *record) {
	p.ThreadCount = -1
	if v, ok := r.uint(f.lists().activeThreads, 4); ok && v <= maxThreads {
		p.ThreadCount = int(v)
	}
	f.session(p, r)
}

// maxSession bounds session numbers: processes outside all sessions have -1.
const maxSession = 1 << 16

// session reads the number of a process's session: from its PEB (SessionId), or
// from MM_SESSION_SPACE, where it follows two 32-bit fields.
func (f *File) session(p *dump.Process, r *record) {
	const pebSession64, pebSession32, spaceSession = 0x2c0, 0x1d4, 8
	at := uint64(pebSession64)
	if f.hdr.ptr == 4 {
		at = pebSession32
	}
	if p.PEB != 0 && p.DirBase != 0 {
		if v, err := dump.ReadUint32(f.processSpace(p), p.PEB+at); err == nil && v < maxSession {
			p.Session, p.HasSession = v, true
			return
		}
	}
	if space := f.kernelPointer(r, f.lists().session); space != 0 {
		if v, err := dump.ReadUint32(f.mem, space+spaceSession); err == nil && v < maxSession {
			p.Session, p.HasSession = v, true
		}
	}
}

// CommandLine returns the command line of a process from its parameters in user
// memory, "" when that is not in the dump.
func (f *File) CommandLine(p *dump.Process) string {
	l := loaderOf(f.hdr.ptr)
	if f.full == nil || p.PEB == 0 || p.DirBase == 0 {
		return ""
	}
	m := f.processSpace(p)
	params, err := dump.ReadPointer(m, f.hdr.arch, p.PEB+uint64(l.parameters))
	if err != nil {
		return ""
	}
	s, _ := f.readUnicode(m, f.hdr.ptr, params+uint64(l.commandLine))
	return s
}

// maxEnvironment bounds an environment block in bytes: Windows allows 32,767
// characters a variable, and real blocks have some thousands in all.
const maxEnvironment = 1 << 18

// Environment returns the environment variables of a process, each as
// "NAME=value", nil when its memory is not in the dump. They may hold secrets:
// show them only to who asks.
func (f *File) Environment(p *dump.Process) []string {
	l := loaderOf(f.hdr.ptr)
	if f.full == nil || p.PEB == 0 || p.DirBase == 0 {
		return nil
	}
	m := f.processSpace(p)
	params, err := dump.ReadPointer(m, f.hdr.arch, p.PEB+uint64(l.parameters))
	if err != nil {
		return nil
	}
	block, err := dump.ReadPointer(m, f.hdr.arch, params+uint64(l.environment))
	if err != nil || block == 0 {
		return nil
	}
	b, n := make([]byte, maxEnvironment), 0
	f.ahead(func() { n, _ = m.ReadAt(b, block) })
	var out []string
	for c := cursor.New(b[:n], "environment", -1); c.Left() >= 2; {
		begin, ended := c.Offset(), false
		for c.Left() >= 2 && !ended {
			ended = c.U16() == 0
		}
		end := c.Offset() - 2
		if !ended || end <= begin { // an empty variable ends the block
			break
		}
		c.Seek(begin)
		out = append(out, cursor.UTF16(c.Bytes(end-begin)))
		c.Skip(2)
	}
	return out
}

// maxUnicode is the most that a UNICODE_STRING's 16-bit length can say.
const maxUnicode = 0xfffe

// readUnicode reads a UNICODE_STRING: Length u16, MaximumLength u16, Buffer. A
// long text takes steps, as many structures may name the same one.
func (f *File) readUnicode(m dump.Memory, ptr int, va uint64) (string, bool) {
	var head [16]byte
	if _, err := m.ReadAt(head[:2*ptr], va); err != nil {
		return "", false
	}
	c := cursor.New(head[:2*ptr], "UNICODE_STRING", -1)
	length, most := c.U16(), c.U16()
	c.Seek(ptr)
	buffer := c.Pointer(ptr)
	if length == 0 || length > most || length > maxUnicode || length%2 != 0 || buffer == 0 || !f.spend(int64(length)/bytesPerStep) {
		return "", false
	}
	b, n := make([]byte, length), 0
	f.ahead(func() { n, _ = m.ReadAt(b, buffer) })
	return cursor.UTF16(b[:n&^1]), n == len(b)
}

// sessionSpaces returns an address space of one process of each session.
func (f *File) sessionSpaces() []*AddressSpace {
	f.full.sessionsOnce.Do(func() {
		const most = 4 // sessions, the first ones
		seen := map[uint32]bool{}
		for i := range f.Processes() {
			p := &f.full.processes[i]
			if p.HasSession && p.DirBase != 0 && p.Exited.IsZero() && !seen[p.Session] && len(seen) < most {
				seen[p.Session] = true
				f.full.sessions = append(f.full.sessions, f.processSpace(p))
			}
		}
	})
	return f.full.sessions
}

// maxScanned bounds the search through memory, in pages: 4 GB.
const maxScanned = 1 << 20

// scanProcesses searches physical memory for processes when no list leads to
// any. A DISPATCHER_HEADER tells its own address where nobody waits for the
// object: its list head at 8 then points to itself.
func (f *File) scanProcesses() []uint64 {
	var out []uint64
	ptr := f.hdr.ptr
	page := make([]byte, pageSize)
	pages, seen := 0, map[uint64]bool{}
	for r := range f.full.phys.pages.runs() {
		for i := range r.count {
			if pages++; pages > maxScanned || len(out) >= f.mostProcesses() {
				f.damage(dump.Errorf(dump.Limit, "EPROCESS", "only the first %d pages were searched for processes", maxScanned))
				return out
			}
			n := 0
			f.ahead(func() { n, _ = f.r.ReadAt(page, pageOffset(r.off, i)) })
			if n < pageSize {
				break
			}
			for _, va := range selfHeads(page, ptr) {
				if !f.spend(1) {
					return out
				}
				if !seen[va] && f.isProcessAt(va) {
					seen[va] = true
					out = append(out, va)
				}
			}
		}
	}
	return out
}

// selfHeads returns the addresses of the objects in a page that look like
// processes whose wait list is empty.
func selfHeads(page []byte, ptr int) (out []uint64) {
	c := cursor.New(page, "", -1)
	for off := 0; off+8+2*ptr <= len(page); off += 2 * ptr {
		c.Seek(off)
		if c.U8()&0x7f != objectProcess {
			continue
		}
		c.Seek(off + 8)
		flink, blink := c.Pointer(ptr), c.Pointer(ptr)
		if va := flink - 8; flink == blink && kernelAddress(ptr, flink) && va%pageSize == uint64(off) {
			out = append(out, va)
		}
	}
	return out
}
