package session_test

import (
	"bytes"
	"math/bits"
	"testing"

	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

func TestFaultyIPMI15Packets(t *testing.T) {
	for name, tt := range map[string]struct {
		faults session.Faults
		wrong  bool
		sent   func(c old, seq uint32) (old, uint32) // whose packet the answer is, and its number
	}{
		"none":    {session.Faults{}, false, func(c old, seq uint32) (old, uint32) { return c, seq }},
		"no ID":   {session.Faults{ZeroSessionID: true}, false, func(c old, seq uint32) (old, uint32) { c.id = 0; return c, seq }},
		"swapped": {session.Faults{SwappedSequence: true}, false, func(c old, seq uint32) (old, uint32) { return c, bits.ReverseBytes32(seq) }},
		"wrong":   {session.Faults{WrongCode: true}, true, func(c old, seq uint32) (old, uint32) { return c, seq }},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := newOldWorld(t), newOld(2, "ADMIN", "ADMIN")
			w.begin(c)
			w.activate(c, c.packet(0, c.activation(4)))
			w.auth.faults = tt.faults
			got := w.old(c, c.packet(c.seq, message(0, 3, 1)))
			if got.Session == nil {
				t.Fatal("what the client sends is not heard")
			}
			who, seq := tt.sent(*c, c.out+1)
			body := []byte("an answer")
			is, want := w.table.Wrap(nil, got.Frame, wire.PayloadIPMI, body), who.packet(seq, body)
			if tt.wrong {
				const code = 4 + 1 + 4 + 4 // RMCP, authentication type, number, ID
				want[code] ^= 0xff
			}
			if !bytes.Equal(is, want) {
				t.Errorf("answer % x, want % x", is, want)
			}
		})
	}
}
