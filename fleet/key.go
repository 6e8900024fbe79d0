package fleet

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
)

// wholeHash is the size up to which files are hashed whole. Of larger ones the
// size, the begin, the end and blocks in between stand for the whole: reading
// gigabytes to know a file again would cost more than triaging it.
const wholeHash = 64 << 20

const (
	sampleSize = 1 << 20
	samples    = 8
)

// Key identifies a job by the content of its files: 128 bits in hexadecimal.
// The same dump under another name has the same key.
func Key(j Job) (string, error) {
	h := sha256.New()
	for _, path := range []string{j.Path, j.Kernel} {
		if path == "" {
			continue
		}
		if err := hashFile(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func hashFile(h io.Writer, path string) error {
	// A pipe or a device must not even be opened: that may wait for ever.
	if st, err := os.Stat(path); err != nil {
		return err
	} else if !st.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	size := st.Size()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(size)))
	if size <= wholeHash {
		_, err = io.Copy(h, io.LimitReader(f, wholeHash+1))
		return err
	}
	for i := range int64(samples) {
		at := (size - sampleSize) / (samples - 1) * i
		if i == samples-1 {
			at = size - sampleSize
		}
		if _, err := io.Copy(h, io.NewSectionReader(f, at, sampleSize)); err != nil {
			return err
		}
	}
	return nil
}
