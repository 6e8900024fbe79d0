package minidump

import (
	"dumptriage/dump"
	"dumptriage/internal/cursor"
)

// Comments are the texts of the CommentA and CommentW streams, "" when there is
// none. ANSI text is returned as its bytes are.
type Comments struct {
	A, W string
}

// maxComment bounds a comment; a longer one is cut.
const maxComment = 1 << 20

// Comments returns the comment streams.
func (f *File) Comments() (Comments, error) { return f.comments.get(f, (*File).decodeComments) }

func (f *File) decodeComments() (Comments, *dump.Error) {
	a, errA := f.comment(StreamCommentA, cursor.CString)
	w, errW := f.comment(StreamCommentW, cursor.UTF16)
	if errA == nil {
		errA = errW
	}
	return Comments{a, w}, errA
}

func (f *File) comment(streamType uint32, decode func([]byte) string) (string, *dump.Error) {
	c, fs := f.open(streamType, maxComment+1)
	if c == nil {
		return "", fs.done()
	}
	n := c.Left()
	if n > maxComment {
		fs.errorf(dump.Limit, c.FileOffset(), "only the first %d bytes are read", maxComment)
		n = maxComment
	}
	text := decode(c.Bytes(n))
	fs.add(c.Err())
	return text, fs.done()
}

// BreakpadInfo is Breakpad's MDRawBreakpadInfo: which thread wrote the dump and
// which asked for it. An id that is not valid is nil.
type BreakpadInfo struct {
	DumpThread, RequestingThread *uint32
}

// BreakpadInfo returns the BreakpadInfo stream.
func (f *File) BreakpadInfo() (*BreakpadInfo, error) {
	return f.breakpad.get(f, (*File).decodeBreakpadInfo)
}

func (f *File) decodeBreakpadInfo() (*BreakpadInfo, *dump.Error) {
	const dumpThreadValid, requestingThreadValid = 1, 2
	c, fs := f.open(StreamBreakpadInfo, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	valid, dumper, requester := c.U32(), c.U32(), c.U32()
	if c.Err() != nil {
		fs.add(c.Err())
		return nil, fs.done()
	}
	info := &BreakpadInfo{}
	if valid&dumpThreadValid != 0 {
		info.DumpThread = &dumper
	}
	if valid&requestingThreadValid != 0 {
		info.RequestingThread = &requester
	}
	return info, fs.done()
}

// Assertion is Breakpad's MDRawAssertionInfo: an assertion of the C runtime that
// ended the process.
type Assertion struct {
	Expression, Function, File string
	Line                       uint32
	Type                       uint32 // 0 unknown, 1 invalid parameter, 2 pure virtual call
}

// Assertion returns the Assertion stream.
func (f *File) Assertion() (*Assertion, error) {
	return f.assertion.get(f, (*File).decodeAssertion)
}

func (f *File) decodeAssertion() (*Assertion, *dump.Error) {
	const textSize = 128 * 2
	c, fs := f.open(StreamAssertion, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	text := func() string { return cursor.UTF16(c.Bytes(min(textSize, c.Left()))) }
	a := &Assertion{Expression: text(), Function: text(), File: text(), Line: c.U32(), Type: c.U32()}
	fs.add(c.Err())
	return a, fs.done()
}
