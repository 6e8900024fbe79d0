//go:build oracle

package oracle

/*
#cgo LDFLAGS: -lunicorn
#include <unicorn/unicorn.h>
#include <stdlib.h>
#include <string.h>

enum { maxWrites = 64, maxPages = 200 };

typedef struct {
	uint64_t r[33]; // rax to r15 by the processor's numbering, rip; or x0 to x30, sp, pc
	uint64_t x[32]; // xmm0 to xmm15, low half first
	uint64_t low, high; // stack written since the last reset
	uint64_t writes;
	uint64_t at[maxWrites];
	uint64_t size[maxWrites];
	uint64_t pages;
	uint64_t page[maxPages];
	unsigned char fill[4096];
	bool arm64, x86;
	uc_engine *uc;
} machine;

static bool mapPage(machine *m, uint64_t page) {
	if (m->pages == maxPages || uc_mem_map(m->uc, page, 4096, UC_PROT_READ|UC_PROT_WRITE) != UC_ERR_OK) return false;
	uc_mem_write(m->uc, page, m->fill, 4096);
	m->page[m->pages++] = page;
	return true;
}

// A function may follow any pointer: where it leads there are plausible ones.
static bool onUnmapped(uc_engine *uc, uc_mem_type type, uint64_t va, int size, int64_t value, void *p) {
	machine *m = p;
	uint64_t first = va & ~0xfffULL, last = (va + size - 1) & ~0xfffULL;
	if (va + size < va) return false;
	if (!mapPage(m, first)) return false;
	if (last != first) mapPage(m, last);
	return true;
}

static void onWrite(uc_engine *uc, uc_mem_type type, uint64_t va, int size, int64_t value, void *p) {
	machine *m = p;
	if (va < m->low) m->low = va;
	if (va + size > m->high) m->high = va + size;
	if (m->writes < maxWrites) { m->at[m->writes] = va; m->size[m->writes] = size; }
	m->writes++;
}

static int gprs[] = {UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX, UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI,
	UC_X86_REG_R8, UC_X86_REG_R9, UC_X86_REG_R10, UC_X86_REG_R11, UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15, UC_X86_REG_RIP};

static int arm64gprs[] = {UC_ARM64_REG_X0, UC_ARM64_REG_X1, UC_ARM64_REG_X2, UC_ARM64_REG_X3, UC_ARM64_REG_X4, UC_ARM64_REG_X5, UC_ARM64_REG_X6, UC_ARM64_REG_X7,
	UC_ARM64_REG_X8, UC_ARM64_REG_X9, UC_ARM64_REG_X10, UC_ARM64_REG_X11, UC_ARM64_REG_X12, UC_ARM64_REG_X13, UC_ARM64_REG_X14, UC_ARM64_REG_X15,
	UC_ARM64_REG_X16, UC_ARM64_REG_X17, UC_ARM64_REG_X18, UC_ARM64_REG_X19, UC_ARM64_REG_X20, UC_ARM64_REG_X21, UC_ARM64_REG_X22, UC_ARM64_REG_X23,
	UC_ARM64_REG_X24, UC_ARM64_REG_X25, UC_ARM64_REG_X26, UC_ARM64_REG_X27, UC_ARM64_REG_X28, UC_ARM64_REG_X29, UC_ARM64_REG_X30, UC_ARM64_REG_SP, UC_ARM64_REG_PC};

static int gprs32[] = {UC_X86_REG_EAX, UC_X86_REG_ECX, UC_X86_REG_EDX, UC_X86_REG_EBX, UC_X86_REG_ESP, UC_X86_REG_EBP, UC_X86_REG_ESI, UC_X86_REG_EDI, UC_X86_REG_EIP};

// The processor gives and takes 4 bytes of each; eip is where rip is.
static void pointers32(machine *m, void **p) {
	for (int i = 0; i < 8; i++) p[i] = &m->r[i];
	p[8] = &m->r[16];
}

static void fetch(machine *m) {
	void *p[33];
	if (m->x86) {
		pointers32(m, p);
		uc_reg_read_batch(m->uc, gprs32, p, 9);
		return;
	}
	if (m->arm64) {
		for (int i = 0; i < 33; i++) p[i] = &m->r[i];
		uc_reg_read_batch(m->uc, arm64gprs, p, 33);
		return;
	}
	for (int i = 0; i < 17; i++) p[i] = &m->r[i];
	uc_reg_read_batch(m->uc, gprs, p, 17);
	for (int i = 0; i < 16; i++) uc_reg_read(m->uc, UC_X86_REG_XMM0 + i, &m->x[2*i]);
}

static void store(machine *m) {
	void *p[33];
	if (m->x86) {
		pointers32(m, p);
		uc_reg_write_batch(m->uc, gprs32, p, 9);
		return;
	}
	if (m->arm64) {
		for (int i = 0; i < 33; i++) p[i] = &m->r[i];
		uc_reg_write_batch(m->uc, arm64gprs, p, 33);
		return;
	}
	for (int i = 0; i < 17; i++) p[i] = &m->r[i];
	uc_reg_write_batch(m->uc, gprs, p, 17);
	for (int i = 0; i < 16; i++) uc_reg_write(m->uc, UC_X86_REG_XMM0 + i, &m->x[2*i]);
}

static int step(machine *m, uint64_t pc) {
	m->writes = 0;
	int err = uc_emu_start(m->uc, pc, ~0ULL, 0, 1);
	fetch(m);
	return err;
}

static void reset(machine *m, uint64_t gs) {
	uint64_t flags = 0x202, vectors = 3 << 20; // of CPACR_EL1: vector instructions do not trap
	while (m->pages) uc_mem_unmap(m->uc, m->page[--m->pages], 4096);
	m->low = ~0ULL; m->high = 0; m->writes = 0;
	if (m->arm64) {
		uc_reg_write(m->uc, UC_ARM64_REG_CPACR_EL1, &vectors);
		return;
	}
	if (!m->x86) uc_reg_write(m->uc, UC_X86_REG_GS_BASE, &gs);
	uc_reg_write(m->uc, UC_X86_REG_EFLAGS, &flags);
}

static int openX86(machine *m) {
	m->x86 = true;
	return uc_open(UC_ARCH_X86, UC_MODE_32, &m->uc);
}

static int openARM64(machine *m) {
	m->arm64 = true;
	int err = uc_open(UC_ARCH_ARM64, UC_MODE_ARM, &m->uc);
	return err ? err : uc_ctl_set_cpu_model(m->uc, UC_CPU_ARM64_MAX);
}

static int forget(machine *m, uint64_t from, uint64_t to) { return uc_ctl_remove_cache(m->uc, from, to); }

static int watch(machine *m, uint64_t stack, uint64_t size) {
	uc_hook a, b;
	int err = uc_hook_add(m->uc, &a, UC_HOOK_MEM_READ_UNMAPPED|UC_HOOK_MEM_WRITE_UNMAPPED, (void *)onUnmapped, m, 1, 0);
	return err ? err : uc_hook_add(m->uc, &b, UC_HOOK_MEM_WRITE, (void *)onWrite, m, stack, stack + size - 1);
}
*/
import "C"

import (
	"fmt"
	"unsafe"

	"dumptriage/dump"
)

// machine is the emulated processor and its memory. Its registers are a copy:
// load them into the processor after changing them.
type machine struct {
	c *C.machine
}

// newMachine returns a processor in the architecture's mode without memory.
func newMachine(arch dump.Arch) (*machine, error) {
	m := &machine{(*C.machine)(C.calloc(1, C.sizeof_machine))}
	var err C.uc_err
	switch arch {
	case dump.ARM64:
		err = C.uc_err(C.openARM64(m.c))
	case dump.X86:
		err = C.uc_err(C.openX86(m.c))
	default:
		err = C.uc_open(C.UC_ARCH_X86, C.UC_MODE_64, &m.c.uc)
	}
	if err != C.UC_ERR_OK {
		return nil, fmt.Errorf("unicorn cannot be opened: %s", C.GoString(C.uc_strerror(err)))
	}
	return m, nil
}

// mapMemory gives the processor size bytes (a multiple of the page size) at va
// and returns them.
func (m *machine) mapMemory(va uint64, size int) ([]byte, error) {
	p := C.aligned_alloc(pageSize, C.size_t(size))
	if p == nil {
		return nil, fmt.Errorf("no memory for %d bytes", size)
	}
	C.memset(p, 0, C.size_t(size))
	if err := C.uc_mem_map_ptr(m.c.uc, C.uint64_t(va), C.size_t(size), C.UC_PROT_ALL, p); err != C.UC_ERR_OK {
		return nil, fmt.Errorf("%d bytes cannot be mapped at %#x: %s", size, va, C.GoString(C.uc_strerror(err)))
	}
	return unsafe.Slice((*byte)(p), size), nil
}

// protect makes code read-only.
func (m *machine) protect(va uint64, size int) {
	C.uc_mem_protect(m.c.uc, C.uint64_t(va), C.size_t(size), C.UC_PROT_READ|C.UC_PROT_EXEC)
}

// watch makes writes to the stack be noted, and memory appear where a function
// follows a pointer, filled with the word given.
func (m *machine) watch(stack uint64, size int, word uint64) error {
	for i := range len(m.c.fill) {
		m.c.fill[i] = C.uchar(word >> (i % 8 * 8))
	}
	if err := C.watch(m.c, C.uint64_t(stack), C.uint64_t(size)); err != C.UC_ERR_OK {
		return fmt.Errorf("unicorn takes no hooks: error %d", err)
	}
	return nil
}

func (m *machine) arm64() *[33]uint64   { return (*[33]uint64)(unsafe.Pointer(&m.c.r)) }
func (m *machine) gprs() *[17]uint64    { return (*[17]uint64)(unsafe.Pointer(&m.c.r)) }
func (m *machine) xmms() *[16][2]uint64 { return (*[16][2]uint64)(unsafe.Pointer(&m.c.x)) }

// load puts the registers into the processor.
func (m *machine) load() { C.store(m.c) }

// step executes the instruction at pc and reports whether it could.
func (m *machine) step(pc uint64) bool { return C.step(m.c, C.uint64_t(pc)) == C.UC_ERR_OK }

// changed says that code at va was written behind the processor's back.
func (m *machine) changed(va uint64, size int) {
	C.forget(m.c, C.uint64_t(va), C.uint64_t(va)+C.uint64_t(size))
}

// reset drops the memory that appeared and sets the base of gs and the flags,
// where there are such.
func (m *machine) reset(gs uint64) { C.reset(m.c, C.uint64_t(gs)) }

// dirty is the range of the stack written to since the last reset.
func (m *machine) dirty() (low, high uint64) { return uint64(m.c.low), uint64(m.c.high) }

// writes calls visit for what the last step wrote to the stack.
func (m *machine) writes(visit func(va, size uint64)) {
	for i := range min(int(m.c.writes), len(m.c.at)) {
		visit(uint64(m.c.at[i]), uint64(m.c.size[i]))
	}
}
