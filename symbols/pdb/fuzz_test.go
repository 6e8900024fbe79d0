package pdb

import (
	"bytes"
	"testing"

	"dumptriage/internal/cursor"
)

// FuzzOpen alters whole files: container, headers and everything behind them.
func FuzzOpen(f *testing.F) {
	f.Add(build(everything()))
	f.Add(build(image{flags: 2, features: []uint32{featureMinimal}}))
	f.Add([]byte(magicMSF7))
	f.Fuzz(func(t *testing.T, b []byte) { exercise(b) })
}

// FuzzMSF reads every stream of a container.
func FuzzMSF(f *testing.F) {
	f.Add(buildMSF([][]byte{nil, []byte("one"), make([]byte, 3*testBlock)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := OpenMSF(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for i := range min(m.Streams(), 64) {
			s, err := m.Stream(i)
			if err != nil {
				continue
			}
			if s.Size() > int64(len(b))+maxBlockSize {
				t.Fatalf("stream %d of %d bytes in a file of %d", i, s.Size(), len(b))
			}
			s.all()
		}
	})
}

// rebuild makes a good file with one part replaced.
func rebuild(alter func(im *image)) []byte {
	im := everything()
	alter(&im)
	return build(im)
}

// FuzzDBI replaces the DBI stream.
func FuzzDBI(f *testing.F) {
	im := everything()
	f.Add(im.dbi([]uint16{0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, testSections}))
	f.Fuzz(func(t *testing.T, b []byte) {
		im := everything()
		streams := make([][]byte, testDebug)
		streams[streamInfo], streams[streamTPI], streams[streamIPI] = im.info(), types(nil), types(im.ids)
		streams[streamDBI], streams[testNames] = b, im.nameTable()
		streams[testModule] = bytesOf(func(w *writer) { w.u32(4).raw(im.symbols).raw(im.c13) })
		streams[testSections] = section(".text", 0x1000, 0x2000)
		streams[testPublics], streams[testRecords] = im.publicStreams()
		exercise(buildMSF(streams))
	})
}

// FuzzSymbols replaces a module's symbols.
func FuzzSymbols(f *testing.F) {
	f.Add(everything().symbols)
	f.Fuzz(func(t *testing.T, b []byte) { exercise(rebuild(func(im *image) { im.symbols = b })) })
}

// FuzzC13 replaces a module's lines.
func FuzzC13(f *testing.F) {
	f.Add(everything().c13)
	f.Add(slicesOfImports())
	f.Fuzz(func(t *testing.T, b []byte) { exercise(rebuild(func(im *image) { im.c13 = b })) })
}

func slicesOfImports() []byte {
	return append(subsection(c13Imports, bytesOf(func(w *writer) { w.u32(1, 1, 0x80000001) })),
		subsection(c13Exports, bytesOf(func(w *writer) { w.u32(0x80000001, 0x1001) }))...)
}

// FuzzTypes replaces the records of the IPI stream, which types share the form of.
func FuzzTypes(f *testing.F) {
	for _, id := range everything().ids {
		f.Add(id)
	}
	f.Add(symbol(uint16(typeFieldList), func(w *writer) { w.u16(uint16(typeMember), 3).u32(0x74).u16(0).str("x") }))
	f.Add(symbol(uint16(typeStructure), func(w *writer) { w.u16(1, 0).u32(0x1000, 0, 0).u16(4).str("outer") }))
	f.Add(symbol(uint16(typeArray), func(w *writer) { w.u32(0x1000, 0x74).u16(8).str("") }))
	f.Add(symbol(uint16(typePointer), func(w *writer) { w.u32(0x1000, 0x1000C) }))
	f.Fuzz(func(t *testing.T, b []byte) {
		streams := make([][]byte, 5)
		im := image{}
		streams[streamInfo] = im.info()
		streams[streamTPI] = types([][]byte{b, b, b, b})
		streams[streamIPI] = streams[streamTPI]
		exercise(buildMSF(streams))
	})
}

// FuzzFrameData replaces both streams of frame data.
func FuzzFrameData(f *testing.F) {
	f.Add(bytesOf(func(w *writer) { w.u32(0x1100, 0x40, 8, 4, 0, 1).u16(3, 4).u32(4) }), bytesOf(func(w *writer) { w.u32(0x1100, 0x40, 2).u16(1, 0x1003) }))
	f.Add([]byte{1, 2, 3}, []byte{4})
	f.Fuzz(func(t *testing.T, program, fpo []byte) {
		exercise(rebuild(func(im *image) { im.debug = map[int][]byte{debugFPO: fpo, debugNewFPO: program} }))
	})
}

// FuzzAnnotations decodes binary annotations: rows are in order within a chunk.
func FuzzAnnotations(f *testing.F) {
	f.Add([]byte{11, 0x44, 11, 0x25, 4, 3})
	f.Add([]byte{2, 1, 6, 14, 3, 2, 4, 4})
	f.Add([]byte{12, 7, 10, 5, 0x90, 0x40, 6, 0xC0, 1, 2, 3, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		decodeAnnotations(cursor.New(b, "", -1), func(r annotationRow) bool {
			if r.end <= r.start {
				t.Fatalf("row %+v", r)
			}
			n++
			return true
		})
		if n > len(b) {
			t.Fatalf("%d rows of %d bytes", n, len(b))
		}
	})
}
