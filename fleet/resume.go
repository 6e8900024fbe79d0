package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"dumptriage/report"
)

// Done is what earlier runs have written.
type Done struct {
	keys map[string]string // path to key
}

// Has reports whether a job is done: the same content under the same name. A
// file that has changed since is not.
func (d *Done) Has(j Job) bool {
	if d == nil {
		return false
	}
	want, ok := d.keys[j.Path]
	if !ok {
		return false
	}
	key, _ := Key(j) // "": unreadable, as it was then
	return key == want
}

// Len is how many records there are.
func (d *Done) Len() int { return len(d.keys) }

// Resume opens the file of an earlier run to go on at its end. A last line that
// was cut off when that run was ended is taken away; each tells visit, if that is
// not nil, every whole line. A file that is not there yet is made.
func Resume(path string, visit func(line []byte) error) (*os.File, *Done, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
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
	d := &Done{keys: map[string]string{}}
	br := bufio.NewReaderSize(r, 1<<20)
	end := int64(0)
	for n := 1; ; n++ {
		line, err := br.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return d, end, nil
		}
		if err != nil {
			return nil, 0, err
		}
		var rec struct {
			Inputs []report.InputJSON `json:"inputs"`
			Batch  *report.BatchJSON  `json:"batch"`
		}
		if err := json.Unmarshal(line, &rec); err != nil || len(rec.Inputs) == 0 {
			return nil, 0, fmt.Errorf("%s:%d: not a record of batch; is this the right file?", name, n)
		}
		key := ""
		if rec.Batch != nil {
			key = rec.Batch.Key
		}
		d.keys[rec.Inputs[0].Path] = key
		if visit != nil {
			if err := visit(line); err != nil {
				return nil, 0, err
			}
		}
		end += int64(len(line))
	}
}
