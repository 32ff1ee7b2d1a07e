package command

import (
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

func TestBurstOfWritesIsDropped(t *testing.T) {
	h := newHost(t)
	d := *h.d
	d.IPMI.Faults.WritesPerWindow, d.IPMI.Faults.WriteWindow = 2, time.Second
	h.d = &d
	write := func(data ...byte) {
		t.Helper()
		if code, out := ask(t, h, wire.Transport, 0x01, append([]byte{lanChannel}, data...)...); code != 0 || len(out) > 0 {
			t.Fatalf("Set LAN Configuration Parameters = %v, % x", code, out)
		}
	}
	arp := func(want byte) {
		t.Helper()
		if _, out := ask(t, h, wire.Transport, 0x02, lanChannel, 11, 0, 0); len(out) != 2 || out[1] != want {
			t.Errorf("the interval of ARPs is % x, want %d", out, want)
		}
	}
	write(11, 5)
	write(11, 6)
	write(11, 7)
	arp(6)
	h.advance(999 * time.Millisecond)
	write(11, 8) // since the last one, kept or not
	arp(6)
	h.clientLag = time.Hour
	h.advance(time.Hour) // in which no client time passes
	write(11, 8)
	arp(6)
	h.advance(time.Second)
	write(11, 9)
	arp(9)
	if code, _ := ask(t, h, wire.Transport, 0x01, lanChannel); code != DataLengthInvalid {
		t.Errorf("what is no write is answered %v", code)
	}
}
