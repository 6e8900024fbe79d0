package minidump

import "dumptriage/dump"

// maxParameters is EXCEPTION_MAXIMUM_PARAMETERS.
const maxParameters = 15

// ExceptionRecord returns the Exception stream with the context that it points
// to.
func (f *File) ExceptionRecord() (*dump.Exception, error) {
	return f.exception.get(f, (*File).decodeException)
}

// Exception implements dump.Source.
func (f *File) Exception() *dump.Exception {
	e, _ := f.ExceptionRecord()
	return e
}

func (f *File) decodeException() (*dump.Exception, *dump.Error) {
	c, fs := f.open(StreamException, fixedLimit)
	if c == nil {
		return nil, fs.done()
	}
	e := &dump.Exception{ThreadID: c.U32()}
	c.Skip(4)
	e.Code, e.Flags, e.Record, e.Address = c.U32(), c.U32(), c.U64(), c.U64()
	if c.Err() != nil { // without code and address there is no exception to speak of
		fs.add(c.Err())
		return nil, fs.done()
	}
	n := c.U32()
	c.Skip(4)
	if n > maxParameters {
		fs.errorf(dump.BadCount, c.FileOffset(), "claims %d parameters, at most %d are possible", n, maxParameters)
		n = maxParameters
	}
	for i := range uint32(maxParameters) {
		v := c.U64()
		if i < n && c.Err() == nil {
			e.Parameters = append(e.Parameters, v)
		}
	}
	at := location(c)
	fs.add(c.Err())
	e.Context = dump.Registers{Arch: f.Arch()}
	if c.Err() == nil {
		e.Context = f.contexts(fs, f.Arch()).read(at, "the context of the exception")
	}
	return e, fs.done()
}
