package server

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dumptriage/dump"
)

// canned answers every request with the same bytes, as they would come over a
// connection.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReader(bytes.NewReader(c)), r)
}

// FuzzAnswer sends whatever a server may: a status, headers and a body. The file
// gets no more than the limit, and an error is of a kind that callers know.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole",
		"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08",
		"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>log in</html>",
		"HTTP/1.1 302 Found\r\nLocation: /again\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
		"HTTP/1.1 302 Found\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\n\r\n",
		"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 99999999999\r\n\r\n",
		"HTTP/1.1 503 Service Unavailable\r\nRetry-After: -1\r\n\r\n",
		"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/2\r\n\r\nab",
		"HTTP/9.9 999\r\n\r\n",
		"220 ftp ready\r\n",
	} {
		f.Add([]byte(answer))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, answer []byte) {
		to, err := os.Create(filepath.Join(dir, "f"))
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		const limit = 64
		c := New(Options{Retries: -1, Backoff: time.Nanosecond, Request: time.Second, Stall: time.Second, Transport: canned(answer)})
		err = c.Fetch("https://symbols.example/app.pdb/1/app.pdb", to, limit)
		if fi, serr := to.Stat(); serr != nil || fi.Size() > limit {
			t.Fatalf("%d bytes, %v", fi.Size(), serr)
		}
		if _, ok := errors.AsType[*dump.Error](err); err != nil && !ok && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}
