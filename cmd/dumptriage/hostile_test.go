package main

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"time"
	"unicode/utf16"
)

// hostile writes minidumps whose parts all claim the same bytes. Its layouts
// are MINIDUMP_HEADER, MINIDUMP_DIRECTORY and the streams of minidumpapiset.h;
// each stream is written by a function that is told its file offset.
type hostile struct {
	streams []hostileStream
}

type hostileStream struct {
	kind  uint32
	write func(at uint32) []byte
}

var le = binary.LittleEndian

func (h *hostile) add(kind uint32, write func(at uint32) []byte) {
	h.streams = append(h.streams, hostileStream{kind, write})
}

// bytes lays the streams out behind the directory, in order.
func (h *hostile) bytes() []byte {
	head := []byte("MDMP")
	for _, v := range []uint32{0xa793, uint32(len(h.streams)), 32, 0, 0, 0, 0} {
		head = le.AppendUint32(head, v)
	}
	at := uint32(32 + 12*len(h.streams))
	var body []byte
	for _, s := range h.streams {
		b := s.write(at)
		for _, v := range []uint32{s.kind, uint32(len(b)), at} {
			head = le.AppendUint32(head, v)
		}
		body = append(body, b...)
		at += uint32(len(b))
	}
	return append(head, body...)
}

func u32s(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = le.AppendUint32(b, x)
	}
	return b
}

func u64s(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = le.AppendUint64(b, x)
	}
	return b
}

// utf16String is a MINIDUMP_STRING.
func utf16String(s string) []byte {
	units := utf16.Encode([]rune(s))
	b := u32s(uint32(2 * len(units)))
	for _, u := range units {
		b = le.AppendUint16(b, u)
	}
	return append(b, 0, 0)
}

const (
	hostileCode  = 0x7ff600001500
	hostileStack = 0x100000
)

// system is a SystemInfo stream of an x64 Windows.
func system(uint32) []byte {
	b := make([]byte, 56)
	le.PutUint16(b, 9)          // PROCESSOR_ARCHITECTURE_AMD64
	le.PutUint32(b[8:], 10)     // MajorVersion
	le.PutUint32(b[16:], 19041) // BuildNumber
	le.PutUint32(b[20:], 2)     // VER_PLATFORM_WIN32_NT
	return b
}

// threads is a ThreadList of n threads that share one CONTEXT and one stack,
// which is a chain of saved frame pointers and return addresses.
func threads(n, links int) func(at uint32) []byte {
	return func(at uint32) []byte {
		const contextSize = 0x4d0
		context := at + 4 + 48*uint32(n)
		b := u32s(uint32(n))
		for i := range n {
			b = append(b, u32s(uint32(i+1), 0, 0, 0)...)
			b = append(b, u64s(0, hostileStack)...)
			b = append(b, u32s(uint32(16*links), context+contextSize, contextSize, context)...)
		}
		c := make([]byte, contextSize)
		le.PutUint32(c[0x30:], 0x10000b) // ContextFlags: control, integer, floating point
		le.PutUint64(c[0x98:], hostileStack)
		le.PutUint64(c[0xa0:], hostileStack) // rbp
		le.PutUint64(c[0xf8:], hostileCode)
		b = append(b, c...)
		for i := range links {
			b = append(b, u64s(hostileStack+16*uint64(i+1), hostileCode+1)...)
		}
		return b
	}
}

// modules is a ModuleList of one module that holds the code.
func modules(at uint32) []byte {
	m := make([]byte, 108)
	le.PutUint64(m, hostileCode&^0xffff)
	le.PutUint32(m[8:], 0x10000) // SizeOfImage
	le.PutUint32(m[20:], at+4+108)
	return slices.Concat(u32s(1), m, utf16String("x.dll"))
}

// unloaded is an UnloadedModuleList of n modules that all cover the code.
func unloaded(n int) func(at uint32) []byte {
	return func(at uint32) []byte {
		b := u32s(12, 24, uint32(n))
		for range n {
			b = append(b, u64s(hostileCode&^0xffff)...)
			b = append(b, u32s(0x7fffffff, 0, 0, at+12+24*uint32(n))...)
		}
		return append(b, utf16String("gone.dll")...)
	}
}

// handles is a HandleData stream of n handles whose type and name are the same
// long text.
func handles(n int) func(at uint32) []byte {
	return func(at uint32) []byte {
		text := at + 16 + 32*uint32(n)
		b := u32s(16, 32, uint32(n), 0)
		for i := range n {
			b = append(b, u64s(uint64(4*i))...)
			b = append(b, u32s(text, text, 0, 0, 1, 1)...)
		}
		long := make([]rune, 32000)
		for i := range long {
			long[i] = '☃'
		}
		return append(b, utf16String(string(long))...)
	}
}

// TestSharedBytes holds small files in which thousands of records point at the
// same bytes to the promise of time and memory: each used to unfold into
// gigabytes of answer.
func TestSharedBytes(t *testing.T) {
	n := 1
	if testing.Short() {
		n = 4
	}
	for _, c := range []struct {
		name    string
		streams map[uint32]func(uint32) []byte
	}{
		{"one stack of 1024 frames for all threads", map[uint32]func(uint32) []byte{3: threads(12000/n, 2000), 4: modules}},
		{"unloaded modules at every frame", map[uint32]func(uint32) []byte{3: threads(4000/n, 0), 14: unloaded(20000)}},
		{"one name for all handles", map[uint32]func(uint32) []byte{12: handles(20000)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &hostile{}
			h.add(7, system)
			for _, kind := range []uint32{3, 4, 12, 14} {
				if w := c.streams[kind]; w != nil {
					h.add(kind, w)
				}
			}
			b := h.bytes()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			analyzeBytes(t, c.name, b)
			took := time.Since(begun)
			runtime.ReadMemStats(&after)
			if took > 3*mutationTime { // wall time: other tests may be running
				t.Errorf("took %v", took)
			}
			// What the process took from the system is the peak, and up to twice
			// what was alive: the collector here is not the program's own.
			if used := after.Sys - before.Sys; used > 2*uint64(mutationMemory+2*len(b)) {
				t.Errorf("took %d bytes of memory for a file of %d", used, len(b))
			}
		})
	}
}
