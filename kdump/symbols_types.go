package kdump

import "strings"

// typeRows are the rows of the tables of offsets as types say them; a structure
// that they do not know leaves the table's.
type typeRows struct {
	offsets offsetRow
	lists   listRow
	waits   waitRow
	vads    vadRow
	form    *vadForm // nil: that of vads
	kd      kdbg     // its offsets alone
	sizes   map[string]int
}

// typeField is a field, under any of several names, and where its offset goes.
type typeField struct {
	structure, names string
	at               *int
}

// fields are those that the tables have.
func (t *typeRows) fields() []typeField {
	o, l, w := &t.offsets, &t.lists, &t.waits
	return []typeField{
		{"_ETHREAD", "Cid", &o.cid}, {"_ETHREAD", "CreateTime", &o.threadCreated},
		{"_ETHREAD", "StartAddress", &o.start}, {"_ETHREAD", "Win32StartAddress", &o.win32Start},
		{"_KTHREAD", "TrapFrame", &o.trapFrame}, {"_KTHREAD", "Process", &o.owner},
		{"_KTHREAD", "StackLimit", &o.stackLimit}, {"_KTHREAD", "StackBase", &o.stackBase}, {"_KTHREAD", "WaitReason", &o.waitReason},
		{"_EPROCESS", "UniqueProcessId", &o.pid}, {"_EPROCESS", "ImageFileName", &o.imageName}, {"_EPROCESS", "CreateTime", &o.processCreated},

		{"_EPROCESS", "ThreadListHead", &l.threadHead}, {"_ETHREAD", "ThreadListEntry", &l.threadEntry},
		{"_EPROCESS", "ExitTime", &l.processExit}, {"_EPROCESS", "WoW64Process|Wow64Process", &l.wow64}, {"_EPROCESS", "Session", &l.session},
		{"_KPROCESS", "UserDirectoryTableBase", &l.userDirBase}, {"_EPROCESS", "ActiveThreads", &l.activeThreads},
		{"_KTHREAD", "KernelTime", &l.kernelTime}, {"_KTHREAD", "UserTime", &l.userTime}, {"_ETHREAD", "ThreadName", &l.threadName},

		{"_KTHREAD", "WaitBlockList", &w.waitList}, {"_KTHREAD", "WaitBlock", &w.waitBlock}, {"_KTHREAD", "WaitBlockCount", &w.waitCount},
		{"_KTHREAD", "MutantListHead", &w.mutants}, {"_ETHREAD", "AlpcMessage", &w.alpcMessage},
		{"_ETHREAD", "AlpcWaitSemaphore|KeyedWaitSemaphore", &w.alpcWait}, {"_ETHREAD", "IrpList", &w.irps}, {"_EPROCESS", "ObjectTable", &w.handles},
		{"_KALPC_MESSAGE", "WaitingThread", &w.waitingThread}, {"_KALPC_MESSAGE", "OwnerPort", &w.ownerPort},
		{"_KALPC_MESSAGE", "ServerThread", &w.serverThread}, {"_KALPC_MESSAGE", "PortMessage", &w.message},

		{"_EPROCESS", "VadRoot", &t.vads.root},
	}
}

// blockFields are those that KDDEBUGGER_DATA64 names.
func (t *typeRows) blockFields() []typeField {
	th, p, c := &t.kd.thread, &t.kd.process, &t.kd.prcb
	return []typeField{
		{"_KTHREAD", "NextProcessor", &th.nextProcessor}, {"_KTHREAD", "Teb", &th.teb}, {"_KTHREAD", "KernelStack", &th.kernelStack},
		{"_KTHREAD", "InitialStack", &th.initialStack}, {"_KTHREAD", "ApcState.Process", &th.apcProcess}, {"_KTHREAD", "State", &th.state},
		{"_KTHREAD", "StackLimit", &th.stackLimit}, {"_KTHREAD", "StackBase", &th.stackBase}, {"_KTHREAD", "WaitReason", &th.waitReason},
		{"_ETHREAD", "IrpList", &th.irps},
		{"_EPROCESS", "Peb", &p.peb}, {"_EPROCESS", "InheritedFromUniqueProcessId", &p.parent}, {"_KPROCESS", "DirectoryTableBase", &p.dirBase},
		{"_KPRCB", "CurrentThread", &c.currentThread}, {"_KPRCB", "IdleThread", &c.idleThread}, {"_KPRCB", "Number", &c.number},
		{"_KPRCB", "Context", &c.context}, {"_KPRCB", "MHz", &c.mhz}, {"_KPRCB", "CpuType", &c.cpuType}, {"_KPRCB", "VendorString", &c.vendor},
		{"_KPRCB", "DpcStack", &c.dpcStack}, {"_KPRCB", "IsrStack", &c.isrStack}, {"_KPCR", "Prcb|PrcbData", &c.contained},
	}
}

// readSymbols asks for everything that is read by types.
func readSymbols(src Symbols, ptr int) *kernelSymbols {
	s := &kernelSymbols{known: map[string]bool{}}
	s.sizes = map[string]int{}
	for _, fd := range append(s.fields(), s.blockFields()...) {
		if size, ok := src.Size(fd.structure); ok && size > 0 && size <= maxStructure {
			s.known[fd.structure], s.sizes[fd.structure] = true, size
		}
		*fd.at = fieldOf(src, fd, s.sizes[fd.structure]-1)
	}
	s.form = symbolVADForm(src, ptr)
	s.kd.thread.size, s.kd.process.size, s.kd.prcb.size = s.sizes["_ETHREAD"], s.sizes["_EPROCESS"], s.sizes["_KPRCB"]
	return s
}

// fieldOf returns the offset of a field, 0 when it is not in its structure.
func fieldOf(src Symbols, fd typeField, last int) int {
	for name := range strings.SplitSeq(fd.names, "|") {
		if off, ok := src.Field(fd.structure, name); ok && off > 0 && off <= last {
			return off
		}
	}
	return 0
}

// rows returns the tables' rows with what types say instead.
func (s *kernelSymbols) rows(o *offsetRow, l *listRow, w *waitRow, v *vadRow) *typeRows {
	out := &typeRows{offsets: *o, lists: *l, waits: *w, vads: *v, form: s.form}
	from := s.fields()
	for i, fd := range out.fields() {
		if s.known[fd.structure] {
			*fd.at = *from[i].at
		}
	}
	return out
}

// kdbg makes a block of types and globals.
func (s *kernelSymbols) kdbg(base uint64, h *header) *kdbg {
	k := s.kd
	k.kernBase = base
	a := s.address
	k.modules, k.processHead, k.cidTable = h.modules.v, a["PsActiveProcessHead"], a["PspCidTable"]
	if k.processHead == 0 {
		k.processHead = h.procs.v
	}
	k.callUserMode, k.resources, k.typeObject = a["KiCallUserMode"], a["ExpSystemResourcesList"], a["ObpTypeObjectType"]
	k.timeIncrement, k.unloaded, k.processorBlock, k.ntBuildLab = a["KeTimeIncrement"], a["MmUnloadedDrivers"], a["KiProcessorBlock"], a["NtBuildLab"]
	return &k
}
