package sol

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

var origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

var config = Config{Size: 255, Accumulate: 60 * time.Millisecond, Threshold: 96, Retries: 3, Interval: 500 * time.Millisecond}

// screen remembers its last bytes.
type screen struct {
	text  []byte
	first uint64
}

func (s *screen) End() uint64 { return s.first + uint64(len(s.text)) }

func (s *screen) Since(from uint64) ([]byte, uint64) {
	from = min(max(from, s.first), s.End())
	return bytes.Clone(s.text[from-s.first:]), from
}

func (s *screen) show(text string) { s.text = append(s.text, text...) }

// bench is a link with its screen and its time.
type bench struct {
	t    *testing.T
	l    *Link
	s    screen
	now  time.Time
	open bool
}

func newBench(t *testing.T) *bench {
	return &bench{t: t, l: New(config, 0, true), now: origin, open: true}
}

// sends are the packets that the link sends after a while.
func (b *bench) sends(after time.Duration) []wire.SOL {
	b.t.Helper()
	b.now = b.now.Add(after)
	var out []wire.SOL
	for _, p := range b.l.Send(b.now, &b.s, b.open) {
		out = append(out, b.parse(p))
	}
	return out
}

func (b *bench) parse(p []byte) wire.SOL {
	b.t.Helper()
	if len(p) > config.Size {
		b.t.Fatalf("a payload has %d bytes, want %d at most", len(p), config.Size)
	}
	s, err := wire.ParseSOL(p)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(s.Data) == 0 {
		s.Data = nil
	}
	return s
}

func (b *bench) want(got []wire.SOL, want ...wire.SOL) {
	b.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		b.t.Errorf("packets (-want +got):\n%s", d)
	}
}

func data(seq byte, text string, flags wire.SOLFlags) wire.SOL {
	return wire.SOL{Seq: seq, Data: []byte(text), Flags: flags}
}

func ack(seq byte, n int) wire.SOL { return wire.SOL{Ack: seq, Accepted: byte(n)} }

func (b *bench) receive(p wire.SOL) Input { return b.l.Receive(b.now, p, &b.s) }

// Characters below the threshold wait for the accumulate interval; at the
// threshold they are sent at once (table 26-5, parameters 3 and 4).
func TestOutputIsAccumulated(t *testing.T) {
	b := newBench(t)
	b.want(b.sends(0))
	b.s.show("lo")
	b.want(b.sends(0))
	if at, ok := b.l.Deadline(); !ok || !at.Equal(b.now.Add(config.Accumulate)) {
		t.Errorf("Deadline() = %v, %v, want the end of the interval", at, ok)
	}
	b.s.show("gin: ")
	b.want(b.sends(config.Accumulate - 1))
	b.want(b.sends(1), data(1, "login: ", 0))
	b.receive(ack(1, 7))
	if at, ok := b.l.Deadline(); ok {
		t.Errorf("with nothing to do Deadline() = %v", at)
	}
	long := strings.Repeat("x", config.Threshold)
	b.s.show(long)
	b.want(b.sends(0), data(2, long, 0))
	b.s.show(strings.Repeat("y", 600)) // while one is on its way
	b.want(b.sends(0))
	b.receive(ack(2, len(long)))
	b.want(b.sends(0), data(3, strings.Repeat("y", 251), 0))
	b.receive(ack(3, 251))
	b.want(b.sends(0), data(4, strings.Repeat("y", 251), 0))
	b.receive(ack(4, 251))
	b.want(b.sends(config.Accumulate), data(5, strings.Repeat("y", 98), 0))
}

// A packet is sent again, unchanged, until it is acknowledged or its retries are
// used up.
func TestRetries(t *testing.T) {
	b := newBench(t)
	b.s.show("text")
	b.sends(0)
	p := data(1, "text", 0)
	b.want(b.sends(config.Accumulate), p)
	b.s.show("more")
	for range config.Retries {
		b.want(b.sends(config.Interval - 1))
		b.want(b.sends(1), p)
	}
	b.want(b.sends(config.Interval - 1))
	b.want(b.sends(1), data(2, "more", 0)) // what waited has waited long enough
	b.receive(ack(1, 4))                   // too late
	b.want(b.sends(config.Interval), data(2, "more", 0))
	b.receive(ack(2, 4))
	b.want(b.sends(time.Hour))
}

// The fields of acknowledgements from a console (table 15-3).
func TestAcknowledgements(t *testing.T) {
	text := data(1, "text", 0)
	tests := []struct {
		name  string
		say   wire.SOL
		again bool // the packet goes at once
		ends  bool // the packet is done with
	}{
		{name: "completion", say: ack(1, 4), ends: true},
		{name: "of more than was sent", say: ack(1, 9), ends: true},
		{name: "of a part", say: ack(1, 2), again: true},
		{name: "resume", say: ack(1, 0), again: true},
		{name: "suspend", say: wire.SOL{Ack: 1, Flags: wire.SOLNack}},
		{name: "of another", say: ack(2, 4)},
		{name: "of none", say: wire.SOL{}},
		{name: "flush", say: wire.SOL{Flags: wire.SOLFlushOutbound}, ends: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.s.show("text")
			b.sends(0)
			b.want(b.sends(config.Accumulate), text)
			b.receive(tt.say)
			if tt.again {
				b.want(b.sends(0), text)
			} else {
				b.want(b.sends(0))
			}
			_, waits := b.l.Deadline()
			suspended := tt.say.Flags&wire.SOLNack != 0
			if want := !tt.ends && !suspended; waits != want {
				t.Errorf("a deadline: %v, want %v", waits, want)
			}
			if suspended {
				b.want(b.sends(time.Hour))
				b.receive(ack(1, 0))
				b.want(b.sends(0), text)
			}
		})
	}
}

func TestTyping(t *testing.T) {
	b := newBench(t)
	in := b.receive(data(1, "root\r", 0))
	if string(in.Text) != "root\r" || in.Break {
		t.Errorf("Receive() = %+v", in)
	}
	yes := ack(1, 5)
	b.want([]wire.SOL{b.parse(b.l.Answer(data(1, "root\r", 0), 5, true))}, yes)
	if in := b.receive(data(1, "root\r", 0)); in.Text != nil {
		t.Errorf("a retry is typed again: %q", in.Text)
	}
	b.want([]wire.SOL{b.parse(b.l.Answer(data(1, "root\r", 0), 0, true))}, yes)
	part := b.receive(data(2, "abc", 0))
	b.want([]wire.SOL{b.parse(b.l.Answer(data(2, "abc", 0), 1, true))}, wire.SOL{Ack: 2, Accepted: 1, Flags: wire.SOLNack})
	if string(part.Text) != "abc" {
		t.Errorf("Receive() = %+v", part)
	}
	if in := b.receive(wire.SOL{Seq: 3, Flags: wire.SOLBreak}); !in.Break || in.Text != nil {
		t.Errorf("a break is %+v", in)
	}
	b.want([]wire.SOL{b.parse(b.l.Answer(wire.SOL{Seq: 3}, 0, true))}, ack(3, 0))
	if in := b.receive(wire.SOL{Seq: 3, Flags: wire.SOLBreak}); in.Break {
		t.Error("a retry breaks again")
	}
	b.receive(ack(9, 1))
	if got := b.l.Answer(ack(9, 1), 0, true); got != nil {
		t.Errorf("an acknowledgement is answered: % x", got)
	}
	b.receive(data(4, "x", 0))
	b.want([]wire.SOL{b.parse(b.l.Answer(data(4, "x", 0), 1, false))}, wire.SOL{Ack: 4, Accepted: 1, Flags: wire.SOLNack | wire.SOLUnavailable})
}

// A change of whether the system accepts characters is sent to the console once.
func TestCharacterTransferUnavailableIsSentOnce(t *testing.T) {
	b := newBench(t)
	b.open = false
	off := wire.SOL{Flags: wire.SOLNack | wire.SOLUnavailable}
	b.want(b.sends(0), off)
	b.want(b.sends(time.Hour))
	b.s.show("last words")
	b.sends(0)
	b.want(b.sends(config.Accumulate), data(1, "last words", wire.SOLUnavailable))
	b.open = true
	b.want(b.sends(0), wire.SOL{Flags: wire.SOLNack})
	b.want([]wire.SOL{b.parse(b.l.Deactivating())}, wire.SOL{Flags: wire.SOLNack | wire.SOLDeactivating})
}

// Output that the console buffer has dropped is reported as a transmit overrun.
func TestDroppedOutputIsReportedAsOverrun(t *testing.T) {
	b := newBench(t)
	b.s.show(strings.Repeat("x", 1000))
	b.s.text, b.s.first = b.s.text[900:], 900
	b.want(b.sends(0), data(1, strings.Repeat("x", 100), wire.SOLOverrun))
	b.receive(ack(1, 100))
	b.s.show("y")
	b.sends(0)
	b.want(b.sends(config.Accumulate), data(2, "y", 0))
}

func TestProbe(t *testing.T) {
	b := newBench(t)
	b.want([]wire.SOL{b.parse(b.l.Probe(b.now))}, wire.SOL{Seq: 1})
	if b.l.Probe(b.now) != nil {
		t.Error("a second probe is sent while the first waits")
	}
	b.receive(wire.SOL{Ack: 1, Flags: wire.SOLNack}) // as FreeIPMI does
	b.want(b.sends(time.Hour))
	if b.l.Unresponsive() {
		t.Error("a console that has answered is gone")
	}
	b.l.Probe(b.now)
	for range config.Retries {
		b.want(b.sends(config.Interval), wire.SOL{Seq: 2})
	}
	if b.sends(config.Interval); !b.l.Unresponsive() {
		t.Error("a console that answers nothing is there")
	}
	b.receive(data(1, "x", 0))
	if b.l.Unresponsive() {
		t.Error("a console that types is gone")
	}
	b.s.show("suspended")
	b.sends(0)
	b.sends(config.Accumulate)
	b.receive(wire.SOL{Ack: 3, Flags: wire.SOLNack})
	b.l.Probe(b.now)
	b.want(b.sends(0), data(3, "suspended", 0))
}

// Over a network that loses and doubles packets, output arrives completely and in
// order while no packet is given up, and input is typed once.
func TestOutputAndInputSurviveALossyNetwork(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		c := config
		c.Retries = 1000
		b := newBench(t)
		b.l.Set(c)
		var shown, seen, typed []byte
		toType := []byte(strings.Repeat("abcdefghijklmnopqrstuvwxyz", 4))
		var lastSeq, seq byte
		pending := []byte(nil)
		deliver := func(f func()) { // to either side
			for range rnd.IntN(3) {
				f()
			}
		}
		fromBMC := func(p []byte) {
			s := b.parse(p)
			if s.Ack == seq && pending != nil {
				toType, pending = toType[s.Accepted:], nil
			}
			if s.Seq == 0 {
				return
			}
			if s.Seq != lastSeq {
				seen = append(seen, s.Data...)
				lastSeq = s.Seq
			}
			deliver(func() { b.receive(ack(s.Seq, len(s.Data))) })
		}
		for round := 0; round < 4000 && (round < 500 || len(toType) > 0 || len(seen) < len(shown)); round++ {
			if round < 500 && rnd.IntN(4) == 0 {
				text := strings.Repeat(string(rune('0'+rnd.IntN(10))), 1+rnd.IntN(150))
				b.s.show(text)
				shown = append(shown, text...)
			}
			b.now = b.now.Add(time.Duration(rnd.IntN(300)) * time.Millisecond)
			for _, p := range b.l.Send(b.now, &b.s, true) {
				deliver(func() { fromBMC(p) })
			}
			if len(toType) == 0 {
				continue
			}
			if pending == nil {
				seq = seq%15 + 1
				pending = toType[:1+rnd.IntN(min(9, len(toType)))]
			}
			p := wire.SOL{Seq: seq, Data: pending}
			deliver(func() {
				in := b.receive(p)
				took := 0
				if in.Text != nil {
					took = 1 + rnd.IntN(len(in.Text))
					typed = append(typed, in.Text[:took]...)
				}
				if a := b.l.Answer(p, took, true); a != nil {
					deliver(func() { fromBMC(a) })
				}
			})
		}
		if !bytes.Equal(seen, shown) {
			t.Errorf("seed %d: %d bytes of %d arrived, equal: %v", seed, len(seen), len(shown), bytes.HasPrefix(shown, seen))
		}
		if want := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 4); string(typed) != want {
			t.Errorf("seed %d: typed %q", seed, typed)
		}
	}
}
