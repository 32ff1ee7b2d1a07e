package session_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Recorded sessions of real clients (ipmitool 1.8.19, FreeIPMI 1.6.9), whose
// random numbers come from a seed, get the responses that they accepted when
// they were recorded.
func TestRecordedClientsAreAnswered(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded sessions: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r := newAuthenticator()
			r.types = wire.AuthTypes(0).With(wire.AuthNone, wire.AuthMD2, wire.AuthMD5, wire.AuthPassword)
			if strings.Contains(name, "-kg") {
				r.kg = append([]byte("bmc key"), make([]byte, 13)...)
			}
			e := &engine{session.New(session.Config{Rand: seeded(1)}), r}
			from, now := netip.MustParseAddrPort("127.0.0.1:40000"), time.Unix(1e9, 0)
			var sent, got []byte
			check := func() {
				if got != nil {
					t.Errorf("packet % x was answered with % x, want nothing", sent, got)
				}
			}
			lines := bufio.NewScanner(f)
			for n := 1; lines.Scan(); n++ {
				kind, text, _ := strings.Cut(lines.Text(), " ")
				if kind == "#" {
					continue
				}
				b, err := hex.DecodeString(text)
				if err != nil {
					t.Fatalf("line %d: %v", n, err)
				}
				if kind == ">" {
					check()
					sent, got = bytes.Clone(b), e.datagram(now, from, b)
					continue
				}
				if !bytes.Equal(got, b) {
					t.Fatalf("line %d: packet % x was answered with\n% x, want\n% x", n, sent, got, b)
				}
				got = nil
			}
			check()
			if n := e.table.Len(); n != 0 || e.table.Max() == 0 {
				t.Errorf("%d sessions are open at the end, want 0", n)
			}
		})
	}
}
