package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"dumptriage/dump"
)

// Options limit what a client does. Zero values mean the defaults.
type Options struct {
	// Request is how long one request may take until its headers are there (30 s).
	Request time.Duration
	// Stall is how long a body may go on without StallBytes of progress (20 s).
	Stall time.Duration
	// Total is how long the client spends on all requests together (30 min).
	Total time.Duration
	// Retries is how often a request is repeated after a failure that may pass: a
	// status 5xx or 429, a connection that broke (2; below 0: never).
	Retries int
	// Backoff is the pause before the first repetition; it doubles each time (1 s).
	Backoff time.Duration
	// Missing is how long an answer that there is no such file counts (1 h; below 0:
	// it is asked for each time).
	Missing time.Duration
	// UserAgent identifies the program.
	UserAgent string
	// Transport makes the connections; nil means the system's proxies and roots.
	Transport http.RoundTripper
}

const (
	maxRedirects  = 5
	maxRetryAfter = 10 * time.Second
	// StallBytes is how much must arrive in each Options.Stall.
	StallBytes = 4 << 10
)

// Client gets files by HTTP. It is safe for concurrent use. A server that cannot be
// reached is not asked again, and neither is one for a file that it lacks.
type Client struct {
	opt     Options
	http    *http.Client
	missing missing

	mu    sync.Mutex
	spent time.Duration
	down  map[string]error // by host
}

// New returns a client.
func New(opt Options) *Client {
	setDefault(&opt.Request, 30*time.Second)
	setDefault(&opt.Stall, 20*time.Second)
	setDefault(&opt.Total, 30*time.Minute)
	setDefault(&opt.Retries, 2)
	setDefault(&opt.Backoff, time.Second)
	setDefault(&opt.Missing, time.Hour)
	setDefault(&opt.UserAgent, "dumptriage")
	return &Client{
		opt: opt, http: &http.Client{Transport: opt.Transport, CheckRedirect: checkRedirect}, down: map[string]error{},
		missing: missing{age: opt.Missing, since: map[string]time.Time{}, asking: map[string]chan struct{}{}},
	}
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// checkRedirect limits redirects, and keeps them from giving up encryption.
func checkRedirect(req *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	switch {
	case len(via) > maxRedirects:
		return refused("redirected more than %d times", maxRedirects)
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return refused("redirected to %s:, which is not followed", req.URL.Scheme)
	case last.URL.Scheme == "https" && req.URL.Scheme != "https":
		return refused("redirected from https to http, which is not followed")
	}
	return nil
}

// refused is an answer that is not accepted, and will not be better next time.
func refused(format string, args ...any) *dump.Error {
	return dump.Errorf(dump.BadRecord, "", format, args...)
}

// failure is an answer that may be better next time.
type failure struct {
	err   error
	after time.Duration // to wait, as the server asked for
	down  bool          // the server could not be reached
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// Fetch writes what a URL names into a file, from its beginning, and at most max
// bytes. The error is fs.ErrNotExist where the server has no such file, and else
// a *dump.Error: Limit when there is more than max, IO when the server could not
// be reached, failed or was too slow.
func (c *Client) Fetch(address string, to *os.File, max int64) (err error) {
	answered, err := c.missing.ask(address)
	if err != nil {
		return err
	}
	defer func() { answered(errors.Is(err, fs.ErrNotExist)) }()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return refused("not the address of a server")
	}
	if err := c.isDown(u.Host); err != nil {
		return err
	}
	begun := time.Now()
	defer func() {
		c.mu.Lock()
		c.spent += time.Since(begun)
		c.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.left(), dump.Errorf(dump.Limit, "", "the time for downloads (%v) is spent", c.opt.Total))
	defer cancel()
	return c.tryAgain(ctx, u, to, max)
}

// left is how much of the time for all requests is left.
func (c *Client) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.opt.Total-c.spent, 0)
}

func (c *Client) isDown(host string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.down[host]
}

// tryAgain repeats a request that fails in a way that may pass.
func (c *Client) tryAgain(ctx context.Context, u *url.URL, to *os.File, max int64) error {
	pause := c.opt.Backoff
	for try := 0; ; try++ {
		err := c.once(ctx, u, to, max)
		f, again := errors.AsType[*failure](err)
		if !again {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if try >= c.opt.Retries {
			return c.giveUp(u, f)
		}
		select {
		case <-time.After(min(pause+f.after, pause+maxRetryAfter)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause *= 2
	}
}

// giveUp makes the error of a server that did not answer well, and notes one that
// cannot be reached.
func (c *Client) giveUp(u *url.URL, f *failure) error {
	e := &dump.Error{Code: dump.IO, Offset: -1, Size: -1, Msg: f.Error()}
	if f.down {
		c.mu.Lock()
		c.down[u.Host] = &dump.Error{Code: dump.IO, Offset: -1, Size: -1, Msg: "not asked again: " + f.Error()}
		c.mu.Unlock()
	}
	return e
}

// once makes one request.
func (c *Client) once(ctx context.Context, u *url.URL, to *os.File, max int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := time.AfterFunc(c.opt.Request, func() { cancel(&failure{err: fmt.Errorf("no answer in %v", c.opt.Request), down: true}) })
	defer slow.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return refused("not the address of a server")
	}
	req.Header.Set("User-Agent", c.opt.UserAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return requestError(ctx, err)
	}
	defer resp.Body.Close()
	slow.Stop()
	if err := statusError(resp); err != nil {
		return err
	}
	if resp.ContentLength > max {
		return tooLarge(max)
	}
	return c.receive(ctx, cancel, resp.Body, to, max)
}

// requestError tells a refusal of ours from a failure on the way.
func requestError(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*dump.Error](err); ok {
		return e
	}
	if f, ok := errors.AsType[*failure](context.Cause(ctx)); ok {
		return f
	}
	if ue, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = ue.Err
	}
	return &failure{err: err, down: true}
}

// statusError returns nil for a status that has the file.
func statusError(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone:
		return fmt.Errorf("%s: %w", resp.Status, fs.ErrNotExist)
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return &failure{err: fmt.Errorf("the server answers %d %s", code, http.StatusText(code)), after: retryAfter(resp)}
	default:
		return refused("the server answers %d %s", code, http.StatusText(code))
	}
}

// retryAfter is how many seconds a server asks to wait.
func retryAfter(resp *http.Response) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(resp.Header.Get("Retry-After")), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

func tooLarge(max int64) error {
	return dump.Errorf(dump.Limit, "", "is larger than the limit of %d bytes", max)
}

// receive writes a body to the file, and ends it when it is too large or comes
// too slowly.
func (c *Client) receive(ctx context.Context, cancel context.CancelCauseFunc, body io.Reader, to *os.File, max int64) error {
	if err := rewind(to); err != nil {
		return err
	}
	w := &watched{to: to, max: max}
	done := make(chan struct{})
	defer close(done)
	go w.watch(c.opt.Stall, done, cancel)
	_, err := io.Copy(w, body)
	switch {
	case err == nil:
		return nil
	case w.err != nil: // of the disk, or our limit
		return w.err
	}
	if f, ok := errors.AsType[*failure](context.Cause(ctx)); ok {
		return f
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the answer ends early")
	}
	return &failure{err: err}
}

// rewind empties the file for another attempt.
func rewind(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.Seek(0, io.SeekStart)
	return err
}
