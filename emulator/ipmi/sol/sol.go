// Package sol implements one serial-over-LAN link of a BMC (IPMI v2.0 rev 1.1,
// §15): which packets go to the console and when they are retried, what a
// console's packet types, and how it is acknowledged. A Link is stepped:
// payloads, time and console output go in, payloads come out, and it names its
// next deadline. It knows no session, socket or machine, and holds no text but
// that of the unacknowledged packet: the rest is read from the screen when it
// is sent.
package sol

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// headerSize is the size of a payload's header (table 15-2), in bytes.
const headerSize = 4

// maxChars is the most characters that a packet can acknowledge.
const maxChars = 255

// Config configures a link by the SOL parameters.
type Config struct {
	Size       int           // largest payload to the console in bytes, with header
	Accumulate time.Duration // how long fewer than Threshold characters wait for more
	Threshold  int           // characters that are sent at once
	Retries    int           // after the first attempt
	Interval   time.Duration // between attempts
}

// Screen is the machine's console output; its bytes are numbered from 0.
type Screen interface {
	// Since returns the output from byte from on; at is the number of its first
	// byte, which is higher than from when older output was dropped.
	Since(from uint64) (text []byte, at uint64)
	// End returns the number of the next byte.
	End() uint64
}

// Link is one activated SOL payload. It is not safe for concurrent use.
type Link struct {
	c            Config
	next         uint64    // first byte of the screen that was not sent
	since        time.Time // when unsent output appeared; zero: there is none
	open         bool      // whether characters could be taken, as the console was last told
	overrun      bool      // characters were dropped since the last packet
	unresponsive bool      // a packet was given up, and nothing was received since
	out          *packet   // the unacknowledged packet; at most one (§15.9)
	outSeq       byte      // sequence number of the last packet that needs an acknowledgement
	in           wire.SOL  // the console's last packet with a sequence number, without its data
	reply        *wire.SOL // response to it; nil: none yet
}

// packet is a packet that waits for its acknowledgement.
type packet struct {
	seq         byte
	text        []byte
	body        []byte
	retriesLeft int       // retries
	due         time.Time // when it is retried; zero while the console has suspended output
}

// New returns a link that sends a screen from a byte on; open says whether the
// machine can take characters.
func New(c Config, from uint64, open bool) *Link { return &Link{c: c, next: from, open: open} }

// Next returns the number of the first byte of the screen that was not sent.
func (l *Link) Next() uint64 { return l.next }

// Set changes the link's configuration.
func (l *Link) Set(c Config) { l.c = c }

// Input is what a packet from the console asks for.
type Input struct {
	Text  []byte // to be typed; part of the packet
	Break bool
}

// Receive handles a packet of the console. The caller carries out the Input and
// then calls Answer.
func (l *Link) Receive(now time.Time, p wire.SOL, s Screen) Input {
	l.unresponsive = false
	again := p.Seq != 0 && l.reply != nil && p.Seq == l.in.Seq
	// Operations come before characters (table 15-2). CTS, DCD and DSR have no
	// effect: the consoles of the systems here use no hardware handshake, and
	// the BMC forwards their output (§15.11).
	if !again && p.Flags&wire.SOLFlushOutbound != 0 {
		l.out, l.since, l.next = nil, time.Time{}, s.End()
	}
	if p.Ack != 0 {
		l.acknowledged(now, p)
	}
	if again {
		return Input{} // a repetition: it did not see the acknowledgement
	}
	if p.Seq != 0 {
		l.in, l.reply = p, nil
		l.in.Data = nil
	}
	in := Input{Break: p.Flags&wire.SOLBreak != 0}
	if p.Seq != 0 && len(p.Data) > 0 { // a packet that only acknowledges has none
		in.Text = p.Data[:min(len(p.Data), maxChars)]
	}
	return in
}

// Answer returns the acknowledgement of a packet that Receive handled, of whose
// text the machine accepted that many characters; open says whether it can take
// more. Nil means that the packet needs none.
func (l *Link) Answer(p wire.SOL, accepted int, open bool) []byte {
	if p.Seq == 0 {
		return nil
	}
	if l.reply == nil {
		a := wire.SOL{Ack: p.Seq, Accepted: byte(min(accepted, maxChars))}
		if accepted < len(p.Data) || !open && len(p.Data) > 0 {
			a.Flags |= wire.SOLNack
		}
		if !open {
			a.Flags |= wire.SOLUnavailable
		}
		l.open, l.reply = open, &a
	}
	return encode(*l.reply)
}

// acknowledged processes an acknowledgement (table 15-3).
func (l *Link) acknowledged(now time.Time, p wire.SOL) {
	if l.out == nil || p.Ack != l.out.seq {
		return
	}
	switch {
	case len(l.out.text) == 0: // FreeIPMI 1.6 calls that a NACK
		l.out = nil
	case p.Flags&wire.SOLNack != 0:
		l.out.due = time.Time{}
	case int(p.Accepted) >= len(l.out.text):
		l.out = nil
	default: // partly accepted, or resumed after a suspension
		l.out.due, l.out.retriesLeft = now, l.out.retriesLeft+1
	}
}

// Send returns the payloads to send to the console now.
func (l *Link) Send(now time.Time, s Screen, open bool) [][]byte {
	var out [][]byte
	if open != l.open { // told once, without acknowledgement
		l.open = open
		out = append(out, encode(l.status(0)))
	}
	if l.out != nil && !l.out.due.IsZero() && !now.Before(l.out.due) {
		if l.out.retriesLeft == 0 { // the console does not respond: the packet's text is lost (§15.11)
			l.out, l.unresponsive = nil, true
		} else {
			l.out.retriesLeft--
			l.out.due = now.Add(l.c.Interval)
			out = append(out, l.out.body)
		}
	}
	if s.End() <= l.next {
		l.since = time.Time{}
		return out
	}
	if l.since.IsZero() {
		l.since = now
	}
	if l.out != nil {
		return out
	}
	if s.End()-l.next < uint64(l.c.Threshold) && now.Before(l.since.Add(l.c.Accumulate)) {
		return out
	}
	text, at := s.Since(l.next)
	l.overrun = l.overrun || at > l.next
	text = text[:min(len(text), l.c.Size-headerSize, maxChars)]
	l.next = at + uint64(len(text))
	l.since = time.Time{}
	if s.End() > l.next {
		l.since = now
	}
	return append(out, l.post(now, text))
}

// post makes a packet that the console must acknowledge, and returns its bytes.
func (l *Link) post(now time.Time, text []byte) []byte {
	l.outSeq = l.outSeq%15 + 1
	p := l.status(l.outSeq)
	p.Flags &^= wire.SOLNack
	p.Data = text
	if l.overrun {
		p.Flags |= wire.SOLOverrun
		l.overrun = false
	}
	l.out = &packet{seq: l.outSeq, text: text, body: encode(p), retriesLeft: l.c.Retries, due: now.Add(l.c.Interval)}
	return l.out.body
}

// Probe finds out whether the console responds: if no packet is unacknowledged,
// it returns one without characters that must be acknowledged. Unresponsive
// tells the result.
func (l *Link) Probe(now time.Time) []byte {
	l.unresponsive = false
	switch {
	case l.out == nil:
		return l.post(now, nil)
	case l.out.due.IsZero(): // the suspended packet serves as the probe
		l.out.due = now
	}
	return nil
}

// Unresponsive reports whether the console has not acknowledged a packet in all
// its retries, and has sent nothing since.
func (l *Link) Unresponsive() bool { return l.unresponsive }

// status returns a packet that tells whether characters can be taken.
func (l *Link) status(seq byte) wire.SOL {
	p := wire.SOL{Seq: seq, Flags: wire.SOLNack}
	if !l.open {
		p.Flags |= wire.SOLUnavailable
	}
	return p
}

// Deactivating returns the packet that tells the console that SOL ends.
func (l *Link) Deactivating() []byte {
	p := l.status(0)
	p.Flags |= wire.SOLDeactivating
	return encode(p)
}

// Deadline returns when Send must be called even without new output; false when
// it has nothing to do.
func (l *Link) Deadline() (time.Time, bool) {
	switch {
	case l.out != nil:
		return l.out.due, !l.out.due.IsZero()
	case l.since.IsZero():
		return time.Time{}, false
	}
	return l.since.Add(l.c.Accumulate), true
}

func encode(p wire.SOL) []byte {
	b, err := p.AppendBinary(nil)
	if err != nil {
		panic(err) // our own packets are never too long
	}
	return b
}
