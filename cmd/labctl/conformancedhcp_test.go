package main

import (
	"testing"
)

func TestDiscoverOf(t *testing.T) {
	packet := func(op, kind byte, options ...byte) []byte {
		b := make([]byte, 240)
		b[0], b[1], b[2] = op, 1, 6
		copy(b[28:], []byte{2, 0, 0, 0, 0, 7})
		copy(b[236:], []byte{99, 130, 83, 99})
		return append(append(b, options...), 53, 1, kind, 255)
	}
	for name, tt := range map[string]struct {
		packet []byte
		want   string
	}{
		"a discover":       {packet(1, 1), "02:00:00:00:00:07"},
		"after a pad":      {packet(1, 1, 0, 0, 60, 3, 'P', 'X', 'E'), "02:00:00:00:00:07"},
		"a request":        {packet(1, 3), ""},
		"a reply":          {packet(2, 1), ""},
		"cut off":          {packet(1, 1)[:200], ""},
		"a cut-off option": {append(packet(1, 1)[:240], 60, 200, 'x'), ""},
		"without its type": {packet(1, 1)[:240], ""},
		"another protocol": {make([]byte, 300), ""},
		"nothing":          {nil, ""},
	} {
		if got := discoverOf(tt.packet).String(); got != tt.want {
			t.Errorf("%s: discoverOf = %q, want %q", name, got, tt.want)
		}
	}
}
