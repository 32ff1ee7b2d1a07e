// Package sol is one serial-over-LAN link of a BMC (IPMI v2.0 rev 1.1, §15):
// which packets go to the console and when they go again, what of the
// console's packets is to be typed and how it is acknowledged. A Link is
// stepped: payloads, time and what the machine has shown go in, payloads come
// out, and it names its next deadline. It knows no session, no socket and no
// machine, and keeps no text but that of the packet that is on its way: what
// is to be sent is read from the screen when it is sent.
package sol

import (
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// headerSize is what a payload has before its characters (table 15-2).
const headerSize = 4

// maxChars is the most that one packet can acknowledge.
const maxChars = 255

// Config is how a link behaves.
type Config struct {
	Size       int           // of a payload to the console at most, in bytes, header included
	Accumulate time.Duration // for which fewer characters than Threshold wait for more
	Threshold  int           // characters that are sent at once
	Retries    int           // after the first time
	Interval   time.Duration // before each
}

// Screen is what the machine has shown, by numbers that go up for ever.
type Screen interface {
	// Since is what was shown from a byte on; at is the number of its first,
	// which is a later one where what was before is forgotten.
	Since(from uint64) (text []byte, at uint64)
	// End is the number that the next byte will have.
	End() uint64
}

// Link is one activated payload. It is not safe for concurrent use.
type Link struct {
	c      Config
	next   uint64    // byte of the screen that was not sent yet
	since  time.Time // there is something that was not; zero: there is not
	open   bool      // characters could be taken when that was last told
	lost   bool      // characters were, since the last packet
	gone   bool      // a packet was given up, and nothing came since
	out    *packet   // that is not acknowledged yet; there is at most one (§15.9)
	outSeq byte      // of the last packet with a number
	in     wire.SOL  // the console's last packet with a number, without its data
	reply  *wire.SOL // to it; nil: it has none yet
}

// packet is one that waits for its acknowledgement.
type packet struct {
	seq  byte
	text []byte
	body []byte
	left int       // retries
	due  time.Time // of the next; zero while the console has suspended it
}

// New makes a link that shows a screen from a byte on; open says whether the
// machine can take characters.
func New(c Config, from uint64, open bool) *Link { return &Link{c: c, next: from, open: open} }

// Set changes how the link behaves from now on.
func (l *Link) Set(c Config) { l.c = c }

// Input is what a packet from the console asks for.
type Input struct {
	Text  []byte // to be typed; a part of the packet
	Break bool
}

// Receive takes a packet of the console. What it asks for is to be done, then
// Answer be called.
func (l *Link) Receive(now time.Time, p wire.SOL, s Screen) Input {
	l.gone = false
	again := p.Seq != 0 && l.reply != nil && p.Seq == l.in.Seq
	// Operations come before characters (table 15-2). CTS, DCD and DSR have no
	// effect: the systems' consoles do without hardware handshake, and what they
	// send all the same the BMC passes on (§15.11).
	if !again && p.Flags&wire.SOLFlushOutbound != 0 {
		l.out, l.since, l.next = nil, time.Time{}, s.End()
	}
	if p.Ack != 0 {
		l.acknowledged(now, p)
	}
	if again {
		return Input{} // it did not see the answer
	}
	if p.Seq != 0 {
		l.in, l.reply = p, nil
		l.in.Data = nil
	}
	in := Input{Break: p.Flags&wire.SOLBreak != 0}
	if p.Seq != 0 && len(p.Data) > 0 { // one that only acknowledges has none
		in.Text = p.Data[:min(len(p.Data), maxChars)]
	}
	return in
}

// Answer is the acknowledgement of a packet that Receive took, and of whose
// text the machine has accepted so many characters; open says whether it can
// take any. Nil is that of a packet that needs none.
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

// acknowledged takes note of an acknowledgement (table 15-3).
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
	default: // not all of it, or it goes on after it was suspended
		l.out.due, l.out.left = now, l.out.left+1
	}
}

// Send returns the payloads that are to go to the console now.
func (l *Link) Send(now time.Time, s Screen, open bool) [][]byte {
	var out [][]byte
	if open != l.open { // told once, and not acknowledged
		l.open = open
		out = append(out, encode(l.status(0)))
	}
	if l.out != nil && !l.out.due.IsZero() && !now.Before(l.out.due) {
		if l.out.left == 0 { // nobody is there: what it held is lost (§15.11)
			l.out, l.gone = nil, true
		} else {
			l.out.left--
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
	l.lost = l.lost || at > l.next
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
	if l.lost {
		p.Flags |= wire.SOLOverrun
		l.lost = false
	}
	l.out = &packet{seq: l.outSeq, text: text, body: encode(p), left: l.c.Retries, due: now.Add(l.c.Interval)}
	return l.out.body
}

// Probe makes sure that a console that is there is heard from: if nothing waits
// to be acknowledged, it returns a packet without characters that does. Gone
// tells how it went.
func (l *Link) Probe(now time.Time) []byte {
	l.gone = false
	switch {
	case l.out == nil:
		return l.post(now, nil)
	case l.out.due.IsZero(): // suspended: what it has suspended will do
		l.out.due = now
	}
	return nil
}

// Gone says that the console has acknowledged nothing in all the time that it
// was given, nor sent anything since.
func (l *Link) Gone() bool { return l.gone }

// status is a packet that tells whether characters can be taken.
func (l *Link) status(seq byte) wire.SOL {
	p := wire.SOL{Seq: seq, Flags: wire.SOLNack}
	if !l.open {
		p.Flags |= wire.SOLUnavailable
	}
	return p
}

// Farewell is the packet that tells that the link ends.
func (l *Link) Farewell() []byte {
	p := l.status(0)
	p.Flags |= wire.SOLDeactivating
	return encode(p)
}

// Deadline is when Send is to be called again, whatever the machine shows until
// then; false when there is nothing that it would do.
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
