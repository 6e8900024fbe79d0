package input

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"dumptriage/internal/corpus"
)

// TestCorpusCabinet opens a real cabinet; both hashes are those that the corpus
// records, of the cabinet and of what another tool extracted.
func TestCorpusCabinet(t *testing.T) {
	f := mustOpen(t, corpus.Need(t, "user/A02-wow64-full-memory-debug-build/targetapp_stacktest_wow64.cab"), Options{})
	if got, ok := f.SHA256(0); !ok || got != "1e6752414dac7cb51bdb0cedd8334d46832fbf4b5e5d9c867f7ca7d6c93bb387" {
		t.Errorf("hash of the file: %s, %v", got, ok)
	}
	sum := sha256.Sum256(content(t, f))
	if got := hex.EncodeToString(sum[:]); got != "b08bf92f29a4cf3040fae2032c2d421438f7ef8bc570bc0b1221a40900220197" {
		t.Errorf("hash of the content: %s", got)
	}
}

// TestCorpusZstd opens dumps that the zstd tool packed.
func TestCorpusZstd(t *testing.T) {
	f := mustOpen(t, corpus.Need(t, "managed/net10-readline-x64/app.dmp.zst"), Options{})
	var head [4]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || !bytes.Equal(head[:], []byte("MDMP")) || f.Container() != "zstd" || len(f.Damage()) != 0 {
		t.Errorf("%q in %q, %v, %v", head, f.Container(), err, f.Damage())
	}
}
