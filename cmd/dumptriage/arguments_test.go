package main

import (
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1, "512M": 512 << 20, "4k": 4096, "2GiB": 2 << 30, "8589934591G": 8589934591 << 30,
		// 2^33 GB are 2^63 bytes: one more than a size can be.
		"8589934592G": -1, "9999999999g": -1, "0": -1, "1T": -1, "": -1, "-1": -1,
	} {
		got, err := parseSize(in)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v", in, got, err)
		}
	}
}

// What a flag's value names is a secret of messages whether "=" stands before it or a
// space.
func TestRedactedArguments(t *testing.T) {
	for _, args := range [][]string{
		{"--redact", "--images", "acme/tower"}, {"--redact", "--images=acme/tower"}, {"-i=acme/tower", "--redact"}, {"--rules=acme/tower", "--redact"},
	} {
		if s := argumentRedactor(args).Message("acme/tower: no such file"); strings.Contains(s, "acme") {
			t.Errorf("%q: %s", args, s)
		}
	}
}
