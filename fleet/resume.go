package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"dumptriage/report"
)

// Done is what earlier runs have written. Its methods may be called by several
// goroutines.
type Done struct {
	mu      sync.Mutex
	records map[entry]int
	n       int
	// Shown is how a path is written in the records, when they are redacted.
	Shown func(path string) string
}

// entry is what tells a record: the path as it is written, and the key. Paths alone do
// not: redacted ones, and such as are no UTF-8, may look the same.
type entry struct{ path, key string }

// Has reports whether a job is done: the same content under the same name. A
// file that has changed since is not. Each record stands for one job, and is used up
// by the answer.
func (d *Done) Has(j Job) bool {
	if d == nil || d.n == 0 {
		return false
	}
	path := j.Path
	if d.Shown != nil {
		path = d.Shown(path)
	}
	key, _ := Key(j) // "": unreadable, as it was then
	e := entry{asWritten(path), key}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.records[e] == 0 {
		return false
	}
	d.records[e]--
	return true
}

// asWritten is a text as JSON has it: each byte that is no UTF-8 is replaced.
func asWritten(s string) string { return string([]rune(s)) }

// Len is how many records there were.
func (d *Done) Len() int { return d.n }

// Resume opens the file of an earlier run to go on at its end. A last line that
// was cut off when that run was ended is taken away; each tells visit, if that is
// not nil, every whole line. A file that is not there yet is made.
func Resume(path string, visit func(line []byte) error) (*os.File, *Done, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, nil, err
	}
	if err := Lock(f); err != nil {
		f.Close()
		return nil, nil, err
	}
	d, end, err := readDone(f, path, visit)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, d, nil
}

// readDone reads the whole lines and returns where they end.
func readDone(r io.Reader, name string, visit func([]byte) error) (*Done, int64, error) {
	d := &Done{records: map[entry]int{}}
	br := bufio.NewReaderSize(r, 1<<20)
	end := int64(0)
	for n := 1; ; n++ {
		head, err := br.Peek(len(recordBegin))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if !isBegun(head) { // before the line is read, which may be the whole of another file
			return nil, 0, notRecord(name, n)
		}
		line, err := br.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		if err != nil {
			return d, end, nil
		}
		var rec struct {
			Inputs []report.InputJSON `json:"inputs"`
			Batch  *report.BatchJSON  `json:"batch"`
		}
		if err := json.Unmarshal(line, &rec); err != nil || len(rec.Inputs) == 0 {
			return nil, 0, notRecord(name, n)
		}
		key := ""
		if rec.Batch != nil {
			key = rec.Batch.Key
		}
		d.records[entry{rec.Inputs[0].Path, key}]++
		d.n++
		if visit != nil {
			if err := visit(line); err != nil {
				return nil, 0, err
			}
		}
		end += int64(len(line))
	}
}

func notRecord(name string, n int) error {
	return fmt.Errorf("%s:%d: not a record of batch; is this the right file?", name, n)
}

// recordBegin is what every record begins with.
var recordBegin = []byte(`{"schema":"dumptriage/`)

// isBegun reports whether a line is a record or the begin of one: what is cut off a
// file must have been written by a batch.
func isBegun(line []byte) bool {
	n := min(len(line), len(recordBegin))
	return bytes.Equal(line[:n], recordBegin[:n])
}
