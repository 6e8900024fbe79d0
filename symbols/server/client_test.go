package server

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dumptriage/dump"
)

// quick is for servers that answer; hasty for those that never will.
var (
	quick = Options{Backoff: time.Millisecond}
	hasty = Options{Backoff: time.Millisecond, Request: 200 * time.Millisecond, Stall: 100 * time.Millisecond}
)

const limit = 1 << 20

// fetch gets a path of a server.
func fetch(t *testing.T, c *Client, url string) (string, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = c.Fetch(url, f, limit)
	b, rerr := os.ReadFile(f.Name())
	if rerr != nil {
		t.Fatal(rerr)
	}
	return string(b), err
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestFetch(t *testing.T) {
	var agent string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		switch r.URL.Path {
		case "/a b/x":
			fmt.Fprint(w, "content")
		case "/zipped":
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				t.Error("gzip is not asked for")
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprint(z, "content")
			z.Close()
		case "/moved":
			http.Redirect(w, r, "/a%20b/x", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	c := New(quick)
	for _, path := range []string{"/a%20b/x", "/zipped", "/moved"} {
		if got, err := fetch(t, c, url+path); got != "content" || err != nil {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if agent != "dumptriage" {
		t.Errorf("user agent %q", agent)
	}
	if _, err := fetch(t, c, url+"/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "ftp://h/x", "file:///etc/passwd", "http://", "%zz"} {
		if _, err := fetch(t, c, bad); err == nil {
			t.Errorf("%q was fetched", bad)
		}
	}
}

// A poisoned server gets nowhere: each answer ends soon, with the reason.
func TestHostileServer(t *testing.T) {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	for _, tc := range []struct {
		name, want string
		code       dump.Code
		handler    http.HandlerFunc
	}{
		{"endless", "larger than the limit", dump.Limit, func(w http.ResponseWriter, r *http.Request) {
			for b := make([]byte, 64<<10); r.Context().Err() == nil; {
				if _, err := w.Write(b); err != nil {
					return
				}
			}
		}},
		{"huge length", "larger than the limit", dump.Limit, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "1048577") }},
		{"gzip bomb", "larger than the limit", dump.Limit, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(make([]byte, 4*limit))
			z.Close()
		}},
		{"slow body", "too slow", dump.IO, func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, "x")
				w.(http.Flusher).Flush()
				select {
				case <-time.After(10 * time.Millisecond):
				case <-stop:
					return
				}
			}
		}},
		{"no answer", "no answer in 200ms", dump.IO, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-stop:
			}
		}},
		{"cut short", "ends early", dump.IO, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "short")
		}},
		{"redirect loop", "redirected more than 5 times", dump.BadRecord, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}},
		{"redirect to a file", "redirected to file:", dump.BadRecord, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}},
		{"forbidden", "403 Forbidden", dump.BadRecord, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(403) }},
		{"failing", "503 Service Unavailable", dump.IO, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }},
		{"no HTTP", "malformed HTTP", dump.IO, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				fmt.Fprint(conn, "220 ftp.example ready\r\n\r\n")
				conn.Close()
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			opt := quick
			switch tc.name {
			case "slow body":
				opt.Stall = hasty.Stall
			case "no answer":
				opt = hasty
			}
			_, err := fetch(t, New(opt), serve(t, tc.handler)+"/f")
			e, ok := errors.AsType[*dump.Error](err)
			if !ok || e.Code != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s: %s", err, tc.code, tc.want)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// Encryption is not given up for a redirect.
func TestNoDowngrade(t *testing.T) {
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "not to be had") })
	s := httptest.NewTLSServer(http.RedirectHandler(plain+"/f", http.StatusFound))
	defer s.Close()
	opt := quick
	opt.Transport = s.Client().Transport
	if got, err := fetch(t, New(opt), s.URL+"/f"); got != "" || err == nil || !strings.Contains(err.Error(), "https to http") {
		t.Errorf("%q, %v", got, err)
	}
}

// What failed for a while is asked again, and what a broken attempt left is gone.
func TestRetry(t *testing.T) {
	var n atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			w.WriteHeader(500)
		case 2:
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half of it, and longer")
		default:
			fmt.Fprint(w, "whole")
		}
	})
	if got, err := fetch(t, New(quick), url+"/f"); got != "whole" || err != nil || n.Load() != 3 {
		t.Errorf("%q, %v after %d requests", got, err, n.Load())
	}
	n.Store(0)
	once := quick
	once.Retries = -1
	if _, err := fetch(t, New(once), url+"/f"); err == nil || n.Load() != 1 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
}

// What a server lacks is asked for once, however many ask and at whatever time, until
// the answer is too old. Other failures, and what is there, are asked for again.
func TestMissingIsRemembered(t *testing.T) {
	var n atomic.Int32
	begun := make(chan struct{}, 1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		switch r.URL.Path {
		case "/there":
			fmt.Fprint(w, "content")
		case "/forbidden":
			w.WriteHeader(403)
		default:
			select {
			case begun <- struct{}{}:
			default:
			}
			time.Sleep(10 * time.Millisecond) // the others come meanwhile
			http.NotFound(w, r)
		}
	})
	c := New(quick)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := fetch(t, c, url+"/none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v", err)
			}
		})
	}
	<-begun
	all.Wait()
	if _, err := fetch(t, c, url+"/none"); !errors.Is(err, fs.ErrNotExist) || n.Load() != 1 {
		t.Errorf("%v after %d requests", err, n.Load())
	}
	for _, path := range []string{"/there", "/forbidden", "/other"} {
		n.Store(0)
		_, _ = fetch(t, c, url+path)
		_, _ = fetch(t, c, url+path)
		if want := map[bool]int32{true: 1, false: 2}[path == "/other"]; n.Load() != want {
			t.Errorf("%s: %d requests, want %d", path, n.Load(), want)
		}
	}
	old := quick
	old.Missing = time.Nanosecond
	c = New(old)
	n.Store(0)
	_, _ = fetch(t, c, url+"/none")
	_, _ = fetch(t, c, url+"/none")
	if n.Load() != 2 {
		t.Errorf("%d requests when the answer was old", n.Load())
	}
}

// A server that is not there is asked for the first file only.
func TestServerDown(t *testing.T) {
	s := httptest.NewServer(nil)
	url := s.URL
	s.Close()
	c := New(quick)
	_, first := fetch(t, c, url+"/a")
	begun := time.Now()
	_, second := fetch(t, c, url+"/b")
	if first == nil || second == nil || strings.Contains(first.Error(), "not asked again") || !strings.Contains(second.Error(), "not asked again") || time.Since(begun) > time.Second {
		t.Errorf("%v; %v", first, second)
	}
}

// The time for all downloads together is limited.
func TestTotalTime(t *testing.T) {
	opt := quick
	opt.Total, opt.Request, opt.Stall = 50*time.Millisecond, time.Minute, time.Minute
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := New(opt)
	for range 2 {
		begun := time.Now()
		_, err := fetch(t, c, url+"/f")
		if e, ok := errors.AsType[*dump.Error](err); !ok || e.Code != dump.Limit || !strings.Contains(err.Error(), "is spent") || time.Since(begun) > 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for in, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "-1": 0, "Fri, 31 Dec 1999 23:59:59 GMT": 0, "99999999999": 0} {
		resp := &http.Response{Header: http.Header{"Retry-After": {in}}}
		if got := retryAfter(resp); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}
