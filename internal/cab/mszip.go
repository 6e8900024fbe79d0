package cab

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"

	"dumptriage/internal/cursor"
)

// mszipDecoder unpacks MSZIP: each block is "CK" and a deflate stream of its
// own that may refer to the 32 KB that the blocks before it unpacked to.
type mszipDecoder struct {
	history []byte // at most blockSize bytes
	inflate io.ReadCloser
}

func (d *mszipDecoder) decode(dst, src []byte) error {
	at := cursor.New(src, "MSZIP", -1)
	if magic := at.Bytes(2); string(magic) != "CK" {
		return errors.New("the block does not begin with CK")
	}
	in := bytes.NewReader(at.Bytes(at.Left()))
	if d.inflate == nil {
		d.inflate = flate.NewReaderDict(in, d.history)
	} else if err := d.inflate.(flate.Resetter).Reset(in, d.history); err != nil {
		return err
	}
	if n, err := io.ReadFull(d.inflate, dst); err != nil {
		return fmt.Errorf("the block claims %d bytes, %d came out: %w", len(dst), n, err)
	}
	var more [1]byte
	if n, err := d.inflate.Read(more[:]); n != 0 || err != io.EOF {
		return fmt.Errorf("the deflate stream does not end after the %d bytes claimed", len(dst))
	}
	if keep := blockSize - len(dst); keep < len(d.history) {
		d.history = append(d.history[:0], d.history[len(d.history)-keep:]...)
	}
	d.history = append(d.history, dst...)
	return nil
}
