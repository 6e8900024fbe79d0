package minidump

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Sizes and values of MINIDUMP_HEADER and MINIDUMP_DIRECTORY.
const (
	headerSize      = 32
	directorySize   = 12
	headerVersion   = 0xa793 // low word of Version; the high word is the writer's own
	maxStreams      = 4096   // far above any real dump (about 20)
	maxFaultsListed = 8      // per stream; the rest is counted
)

// File is an opened minidump. It implements dump.Source; besides, it has one
// accessor per stream. An accessor returns what could be read together with the
// first error, a *dump.Error; both are nil when the stream is not there.
type File struct {
	input

	version  uint32
	flags    uint64
	stamp    uint32
	streams  []StreamInfo
	byType   map[uint32]int // type to index of the stream that counts
	platform uint32

	systemInfo   lazy[*SystemInfo]
	miscInfo     lazy[*MiscInfo]
	threadList   lazy[[]ThreadRecord]
	threadInfos  lazy[[]ThreadInfo]
	threadNames  lazy[map[uint32]string]
	moduleList   lazy[[]ModuleRecord]
	hostModules  lazy[[]ModuleRecord]
	unloaded     lazy[[]dump.Module]
	exception    lazy[*dump.Exception]
	memoryList   lazy[[]dump.Range]
	memory64     lazy[[]dump.Range]
	memory       lazy[*dump.FileMemory]
	regions      lazy[[]dump.Region]
	handles      lazy[[]dump.Handle]
	handleOps    lazy[*HandleOperations]
	tables       lazy[[]FunctionTable]
	tokens       lazy[[]Token]
	systemMemory lazy[*SystemMemory]
	vmCounters   lazy[*VMCounters]
	comments     lazy[Comments]
	breakpad     lazy[*BreakpadInfo]
	assertion    lazy[*Assertion]
	crashpad     lazy[*Crashpad]

	arch    lazy[dump.Arch]
	system  lazy[*dump.System]
	process lazy[*dump.Process]
	threads lazy[[]dump.Thread]
	modules lazy[[]dump.Module]
}

// lazy is a value decoded on first use, with the error that goes with it.
type lazy[T any] struct {
	once sync.Once
	val  T
	err  *dump.Error
}

func (l *lazy[T]) get(f *File, decode func(*File) (T, *dump.Error)) (T, error) {
	return decodeOnce(l, f, decode)
}

// decodeOnce is get for any reader.
func decodeOnce[S, T any](l *lazy[T], source S, decode func(S) (T, *dump.Error)) (T, error) {
	l.once.Do(func() { l.val, l.err = decode(source) })
	if l.err != nil {
		return l.val, l.err
	}
	return l.val, nil
}

// Open reads the header and directory of a minidump of size bytes. The name is
// for messages. It fails, with a *dump.Error, only when there is no answer to
// give at all: not a minidump, or one of another platform than Windows.
func Open(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{input: input{r: r, size: size, name: name}, byType: map[uint32]int{}}
	c := cursor.At(r, size, 0, headerSize, "header")
	signature, version := c.U32(), c.U32()
	count, directory := c.U32(), c.U32()
	c.Skip(4) // CheckSum: no writer sets it
	f.version, f.stamp, f.flags = version, c.U32(), c.U64()
	if err := asError(c.Err()); err != nil {
		if err.Code == dump.Truncated {
			err = &dump.Error{Code: dump.Truncated, Stream: "header", Offset: 0, Size: headerSize,
				Msg: fmt.Sprintf("the header reaches beyond the end of the file (%d bytes)", size)}
		}
		err.File = name
		return nil, err
	}
	if signature != 0x504d444d {
		return nil, &dump.Error{Code: dump.UnsupportedFormat, File: name, Stream: "header", Offset: 0, Size: 4, Msg: "not a minidump: the file does not begin with MDMP"}
	}
	if version&0xffff != headerVersion {
		f.note(&dump.Error{Code: dump.BadRecord, Warning: true, Stream: "header", Offset: 4, Size: 4,
			Msg: fmt.Sprintf("version %#x is not the documented %#x", version&0xffff, headerVersion)})
	}
	f.readDirectory(int64(directory), count)
	if err := f.checkPlatform(); err != nil {
		err.File = name
		return nil, err
	}
	return f, nil
}

// readDirectory reads the stream directory. A stream that lies outside the file
// in whole or part becomes damage; the others are still used.
func (f *File) readDirectory(offset int64, count uint32) {
	c := cursor.At(f.r, f.size, offset, min(int64(count), maxStreams)*directorySize, "directory")
	fs := f.faults("directory")
	defer fs.done()
	if c.Err() != nil {
		fs.add(&dump.Error{Code: dump.Truncated, Stream: "directory", Offset: offset, Size: int64(count) * directorySize,
			Msg: fmt.Sprintf("the stream directory begins beyond the end of the file (%#x bytes)", f.size)})
		return
	}
	if room := (f.size - offset) / directorySize; int64(count) > room {
		fs.errorf(dump.BadCount, offset, "claims %d streams, room for %d", count, room)
	} else if count > maxStreams {
		fs.errorf(dump.Limit, offset, "%d streams, of which the first %d are read", count, maxStreams)
	}
	n := c.Len() / directorySize
	f.streams = make([]StreamInfo, 0, n)
	for range n {
		s := StreamInfo{Type: c.U32(), Size: int64(c.U32()), Offset: int64(c.U32())}
		s.Name = StreamName(s.Type)
		f.addStream(fs, s)
	}
}

// addStream enters a stream into the directory. Of several streams of one type
// the first that holds anything counts.
func (f *File) addStream(fs *faults, s StreamInfo) {
	if s.Type == StreamUnused {
		s.Note = "unused"
		f.streams = append(f.streams, s)
		return
	}
	if s.Err = f.outside(s.Name, s.Offset, s.Size); s.Err != nil {
		fs.add(s.Err)
	}
	if i, taken := f.byType[s.Type]; taken && (f.streams[i].usable() || !s.usable()) {
		s.Note = "duplicate, not used"
		if s.Type <= StreamLastReserved {
			fs.add(&dump.Error{Code: dump.BadRecord, Warning: true, Stream: s.Name, Offset: s.Offset, Size: s.Size, Msg: "a second stream of this type is not used"})
		}
	} else {
		f.byType[s.Type] = len(f.streams)
	}
	f.streams = append(f.streams, s)
}

// Streams returns the directory in file order, unknown streams included. Err
// holds the first error of a stream that was found so far; DecodeAll finds all.
// The slice is the caller's.
func (f *File) Streams() []StreamInfo {
	out := slices.Clone(f.streams)
	for _, e := range f.Damage() {
		if i := slices.IndexFunc(out, func(s StreamInfo) bool { return s.Name == e.Stream && s.Note == "" }); i >= 0 && out[i].Err == nil && !e.Warning {
			out[i].Err = e
		}
	}
	return out
}

// Has reports whether a stream of the type is there and holds bytes that lie in
// the file.
func (f *File) Has(streamType uint32) bool {
	i, ok := f.byType[streamType]
	return ok && f.streams[i].usable() && f.streams[i].Offset < f.size
}

// StreamBytes returns a reader over the raw bytes of a stream, as far as they
// are in the file, or nil when there is no such stream.
func (f *File) StreamBytes(streamType uint32) *io.SectionReader {
	if !f.Has(streamType) {
		return nil
	}
	s := f.streams[f.byType[streamType]]
	return io.NewSectionReader(f.r, s.Offset, min(s.Size, f.size-s.Offset))
}

// Version returns the header's Version: 0xa793 in the low word, a value of the
// writer's own in the high word.
func (f *File) Version() uint32 { return f.version }

// TypeFlags returns the MINIDUMP_TYPE flags of the header.
func (f *File) TypeFlags() uint64 { return f.flags }

// Captured returns the header's time stamp, to the second.
func (f *File) Captured() time.Time {
	if f.stamp == 0 {
		return time.Time{}
	}
	return time.Unix(int64(f.stamp), 0).UTC()
}
