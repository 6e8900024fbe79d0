package triage

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dumptriage/dump"
	"dumptriage/internal/cursor"
	"dumptriage/internal/input"
	"dumptriage/kdump"
	"dumptriage/minidump"
)

// Dump is an opened dump file.
type Dump struct {
	dump.Source
	Path string
	File *input.File

	otherMember string // of the archive, read too
	onDisk      bool   // Path is that of a file

	kernelSymbols bool // it is read by the PDB of its kernel
	watch         kdump.Watcher
	watchNames    bool
}

// Watched opens a kernel dump once more, from the same file, which the first one has to
// close. The watcher is told what of the file is used, and by whose memory; names says
// whether those of processes and threads count.
func (d *Dump) Watched(watch kdump.Watcher, names bool) (*Dump, error) {
	k, err := kdump.OpenWith(kernelReader(d.File), d.File.Size(), d.Path, kdump.Options{Watch: watch, WatchNames: names})
	if err != nil {
		return nil, withFile(err, d.Path)
	}
	return &Dump{Source: k, Path: d.Path, File: d.File, onDisk: d.onDisk, watch: watch, watchNames: names}, nil
}

// Kernel reports whether the dump is a kernel dump.
func (d *Dump) Kernel() bool {
	f := d.Format()
	return f == dump.FormatKernel64 || f == dump.FormatKernel32
}

// Close closes the file. The source and everything made from it must not be
// used afterwards.
func (d *Dump) Close() error { return d.File.Close() }

// Open opens a dump of any supported format, compressed or not; the magic
// decides. The error is a *dump.Error with the path in it.
func Open(path string) (*Dump, error) {
	f, err := input.Open(path, input.Options{})
	if err != nil {
		return nil, withFile(err, path)
	}
	d, err := OpenInput(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	d.onDisk = path != "-"
	return d, nil
}

// OpenInput opens a dump in a file that is open already; the dump owns the file
// from then on. On an error the file stays the caller's.
func OpenInput(f *input.File) (*Dump, error) {
	src, err := openSource(f, f.Name())
	if err != nil {
		return nil, withFile(err, f.Name())
	}
	return &Dump{Source: src, Path: f.Name(), File: f}, nil
}

func openSource(f *input.File, path string) (dump.Source, error) {
	head := cursor.At(f, f.Size(), 0, 8, "header")
	magic := string(head.Bytes(head.Left()))
	switch {
	case strings.HasPrefix(magic, "MDMP"):
		return wrap(minidump.Open(f, f.Size(), path))
	case magic == "PAGEDU64", magic == "PAGEDUMP":
		return wrap(kdump.Open(kernelReader(f), f.Size(), path))
	case magic == "USERDU64", magic == "USERDUMP":
		return wrap(minidump.OpenUserDump(f, f.Size(), path))
	}
	return nil, notADump(magic)
}

// smallKernelDump is the size up to which a kernel dump is read through its
// mapping. Larger ones hold physical memory, for which the reader has a cache.
const smallKernelDump = 64 << 20

func kernelReader(f *input.File) io.ReaderAt {
	if f.Size() > smallKernelDump {
		return f.Unmapped()
	}
	return f
}

// wrap keeps a nil pointer from becoming a Source that is not nil.
func wrap[S dump.Source](s S, err error) (dump.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// notADump says what a file that is no dump begins with, as far as that helps
// somebody who passed the wrong one.
func notADump(magic string) error {
	what := "it begins with the bytes " + hex.EncodeToString([]byte(magic))
	for _, known := range []struct{ magic, name string }{
		{"", "it is empty"},
		{"MZ", "it is a PE image (.exe, .dll, .sys); pass its folder with --images"},
		{"\x7fELF", "it is an ELF file"},
		{"Microsoft C/C++"[:8], "it is a PDB; pass its folder with --symbols"},
		{"MODULE ", "it is a Breakpad symbol file; pass its folder with --symbols"},
		{"hibr", "it is a hibernation file"},
		{"HIBR", "it is a hibernation file"},
		{"PMDM", "it is a big-endian minidump, which Windows never writes"},
	} {
		if known.magic == "" && magic == "" || known.magic != "" && strings.HasPrefix(magic, known.magic) {
			what = known.name
			break
		}
	}
	return &dump.Error{Code: dump.UnsupportedFormat, Offset: 0, Size: -1, Msg: "not a Windows dump: " + what}
}

// withFile puts the path into a *dump.Error that lacks it, and makes any other
// error one.
func withFile(err error, path string) error {
	if e, ok := err.(*dump.Error); ok {
		if e.File != "" {
			return e
		}
		c := *e
		c.File = path
		return &c
	}
	return &dump.Error{Code: dump.IO, File: path, Offset: -1, Size: -1, Msg: "cannot be opened", Err: err}
}

// compressed are the suffixes that may follow a dump's own name.
var compressed = []string{"", ".zst", ".gz", ".zip", ".cab"}

// Companion finds the kernel dump that lies beside a user dump: X.Kernel.dmp
// beside X.dmp, in any case and with any compression.
func Companion(path string) (string, bool) {
	dir, name := filepath.Split(path)
	stem := strings.ToLower(name)
	for _, suffix := range compressed {
		if s, ok := strings.CutSuffix(stem, ".dmp"+suffix); ok {
			stem = s
			break
		}
	}
	if stem == strings.ToLower(name) || strings.HasSuffix(stem, ".kernel") {
		return "", false
	}
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", false
	}
	for _, suffix := range compressed {
		want := stem + ".kernel.dmp" + suffix
		for _, e := range entries {
			if strings.ToLower(e.Name()) != want {
				continue
			}
			// Nobody asked for it by name: it must not be a pipe or a device,
			// whose reading may never end.
			found := filepath.Join(dir, e.Name())
			if fi, err := os.Stat(found); err == nil && fi.Mode().IsRegular() {
				return found, true
			}
		}
	}
	return "", false
}

// Describe says what the file is. Files over hashLimit bytes are not hashed,
// since that would read all of a dump of which the rest needs little.
func (d *Dump) Describe(hashLimit int64) Input {
	in := Input{Path: d.Path, Member: d.File.Member(), Size: d.File.DiskSize(), Format: d.Format(), Kind: d.Kind(), Flags: d.Flags(), Comments: comments(d.Source)}
	if sum, ok := d.File.SHA256(hashLimit); ok {
		in.SHA256 = sum
	}
	return in
}

// comments returns the comments in a dump.
func comments(src dump.Source) []string {
	var all []string
	switch f := src.(type) {
	case *minidump.File:
		c, _ := f.Comments() // damage is among the file's
		all = []string{c.A, c.W}
	case *kdump.File:
		all = []string{f.Comment()}
	}
	var out []string
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// DefaultHashLimit is the size up to which inputs are hashed.
const DefaultHashLimit = 64 << 20

// Errors returns the damage found so far, with the file's path in it, in file
// order.
func (d *Dump) Errors() []*dump.Error {
	var out []*dump.Error
	for _, e := range slices.Concat(d.File.Damage(), d.Damage()) {
		c := *e
		if c.File == "" {
			c.File = d.Path
		}
		out = append(out, &c)
	}
	if e := d.unread(); e != nil {
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b *dump.Error) int { return cmp.Compare(a.Offset, b.Offset) })
	return out
}

// String names the dump in messages.
func (d *Dump) String() string { return fmt.Sprintf("%s (%s)", d.Path, d.Kind()) }
