package redact

import (
	"bytes"
	"encoding/json"
)

// JSON is Text for each string of a JSON text.
func (r *Redactor) JSON(text []byte) []byte {
	if r == nil || !bytes.ContainsAny(text, `\/`) && !bytes.Contains(text, []byte("S-1-")) {
		return text
	}
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		open := bytes.IndexByte(text, '"')
		if open < 0 {
			return append(out, text...)
		}
		end := literalEnd(text, open)
		out = append(out, text[:open]...)
		out = append(out, r.literal(text[open:end])...)
		text = text[end:]
	}
	return out
}

// literalEnd returns where the string that begins at open has ended.
func literalEnd(text []byte, open int) int {
	for i := open + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func (r *Redactor) literal(quoted []byte) []byte {
	var s string
	if !bytes.ContainsAny(quoted, `\/-`) || json.Unmarshal(quoted, &s) != nil {
		return quoted
	}
	clean := r.Text(s)
	if clean == s {
		return quoted
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(clean) != nil {
		return []byte(`""`) // encoding a string does not fail
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Message redacts a sentence that was made outside of any facts.
func (r *Redactor) Message(s string) string {
	if r == nil {
		return s
	}
	return r.sentence(s)
}
