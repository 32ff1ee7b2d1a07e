package ipmi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// fakeConsole echoes what is typed in lower case as upper case.
type fakeConsole struct {
	owner   *fakeSession
	accept  int  // characters of a packet
	full    int  // packets of which nothing is accepted
	off     bool // the system takes nothing
	typed   strings.Builder
	breaks  int
	queue   []byte // that is to be shown
	out     []byte // that is not acknowledged
	number  byte   // sequence number of the packet that out is in
	grows   bool   // the packet comes twice, the second time with more in it
	refused int    // acknowledgements that are wrong
}

func (f *fake) payload(s *fakeSession, on bool) []byte {
	c := f.console
	switch {
	case c == nil:
		return []byte{0x81}
	case on && c.owner != nil, !on && c.owner == nil:
		return []byte{0x80}
	case on:
		c.owner = s
		const inbound = 24
		return []byte{0, 0, 0, 0, 0, inbound, 0, 0xFF, 0, 0x6F, 0x02, 0xFF, 0xFF}
	}
	c.owner = nil
	return []byte{0}
}

// serial answers a SOL packet.
func (f *fake) serial(s *fakeSession, body []byte) [][]byte {
	c := f.console
	p, err := parseSOL(body)
	if err != nil || c == nil || c.owner != s {
		return nil
	}
	if p.ack != 0 {
		switch {
		case p.ack != c.number || int(p.accepted) > len(c.out):
			c.refused++
		case int(p.accepted) == len(c.out):
			c.out = nil
		}
	}
	if p.sequence == 0 {
		return c.show(s)
	}
	if p.status&SOLBreak != 0 {
		c.breaks++
	}
	n := min(len(p.data), c.accept)
	answer := solPacket{ack: p.sequence}
	switch {
	case c.off:
		n, answer.status = 0, solNACK|solUnavailable
	case c.full > 0:
		c.full--
		n, answer.status = 0, solNACK
	case n < len(p.data):
		answer.status = solNACK
	}
	answer.accepted = byte(n)
	c.typed.Write(p.data[:n])
	c.queue = append(c.queue, strings.ToUpper(string(p.data[:n]))...)
	sealed, _ := s.encode(PayloadSOL, answer.bytes())
	return append([][]byte{sealed}, c.show(s)...)
}

// show sends what is to be shown, one packet at a time.
func (c *fakeConsole) show(s *fakeSession) [][]byte {
	if len(c.out) > 0 || len(c.queue) == 0 {
		return nil
	}
	c.out, c.queue = c.queue, nil
	c.number = c.number%0x0F + 1
	var all [][]byte
	packet := func(text []byte) {
		b, _ := s.encode(PayloadSOL, solPacket{sequence: c.number, data: text}.bytes())
		all = append(all, b)
	}
	if c.grows && len(c.out) > 1 {
		packet(c.out[:len(c.out)/2])
	}
	packet(c.out)
	return all
}

// bridge answers for the controller at 2Ch.
func (f *fake) bridge(s *fakeSession, outer message) [][]byte {
	inner, err := parseMessage(outer.Data[1:])
	if err != nil || inner.To != 0x2C {
		response, _ := f.answer(outer, []byte{0x83}).AppendBinary(nil)
		out, _ := s.encode(PayloadIPMI, response)
		return [][]byte{out}
	}
	reply := message{
		To: inner.From, NetFn: inner.NetFn | 1, From: inner.To, Sequence: inner.Sequence, Command: inner.Command, Data: []byte{0, 0x2C},
	}
	wrapped, _ := reply.AppendBinary(nil)
	data := []byte{0}
	if f.behind {
		data = append(data, wrapped...)
	}
	response, _ := f.answer(outer, data).AppendBinary(nil)
	first, _ := s.encode(PayloadIPMI, response)
	if f.behind {
		return [][]byte{first}
	}
	second, _ := s.encode(PayloadIPMI, wrapped)
	return [][]byte{first, second}
}

func readAll(t *testing.T, c *Console, want string) {
	t.Helper()
	var got strings.Builder
	for got.Len() < len(want) {
		text, err := c.Read(t.Context(), time.Second)
		if err != nil {
			t.Fatalf("Read() error = %v after %q", err, got.String())
		}
		got.Write(text)
	}
	if got.String() != want {
		t.Errorf("Read() = %q, want %q", got.String(), want)
	}
}

// Text arrives whole and in order, however little of it a BMC takes at a time.
func TestConsole(t *testing.T) {
	const text = "the quick brown fox jumps over the lazy dog, and over again\r"
	for name, console := range map[string]fakeConsole{
		"all at once":   {accept: 0xFF},
		"five at once":  {accept: 5},
		"full at first": {accept: 0xFF, full: 3},
		"packets grow":  {accept: 0xFF, grows: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, target := newFake(t, func(f *fake) { f.console = &console })
			s := target.session(t)
			c, err := s.Console(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Write(t.Context(), []byte(text)); err != nil {
				t.Fatalf("Write() error = %v", err)
			}
			readAll(t, c, strings.ToUpper(text))
			if err := c.Control(t.Context(), SOLBreak); err != nil {
				t.Errorf("Control() error = %v", err)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Errorf("Close() error = %v", err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if got := f.console; got.typed.String() != text || got.breaks != 1 || got.refused != 0 {
				t.Errorf("the BMC has %q, %d breaks and %d wrong acknowledgements", got.typed.String(), got.breaks, got.refused)
			}
		})
	}
}

func TestConsoleOfASystemThatIsOff(t *testing.T) {
	_, target := newFake(t, func(f *fake) { f.console = &fakeConsole{off: true} })
	c, err := target.session(t).Console(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), []byte("x")); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Write() error = %v, want %v", err, ErrUnavailable)
	}
}

func TestBridge(t *testing.T) {
	for _, behind := range []bool{false, true} {
		_, target := newFake(t, func(f *fake) { f.behind = behind })
		s := target.session(t)
		for range 3 {
			if got, err := s.Bridge(t.Context(), 0, 0x2C, GetDeviceID); err != nil || string(got) != "\x2C" {
				t.Errorf("Bridge() = % X, %v, the answer within another: %v", got, err, behind)
			}
		}
		if _, err := s.Bridge(t.Context(), 0, 0x52, GetDeviceID); !errors.Is(err, Code(0x83)) {
			t.Errorf("Bridge() to nobody: error = %v, want %v", err, Code(0x83))
		}
	}
}

// A request that is not answered comes again as the same message in another
// packet.
func TestRetry(t *testing.T) {
	f, target := newFake(t, nil)
	s := target.session(t)
	numbers := func(lose int) [][2]uint32 {
		f.mu.Lock()
		defer f.mu.Unlock()
		was := f.numbers
		f.numbers, f.lose = nil, lose
		return was
	}
	numbers(2)
	if _, err := s.Do(t.Context(), GetDeviceID); err != nil {
		t.Fatal(err)
	}
	came := numbers(1000)
	if len(came) != 3 {
		t.Fatalf("the request came %d times, want 3: %v", len(came), came)
	}
	for i, n := range came {
		if n[0] != came[0][0]+uint32(i) || n[1] != came[0][1] {
			t.Errorf("packet and message numbers are %v", came)
		}
	}
	s.conn.Tries, s.conn.Timeout = 2, 10*time.Millisecond
	if _, err := s.Do(t.Context(), GetDeviceID); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "Get Device ID") {
		t.Errorf("Do() error = %v, want %v that names the command", err, ErrNoAnswer)
	}
	s.conn.Tries, s.conn.Timeout = 1, time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Do(ctx, GetDeviceID); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrNoAnswer) {
		t.Errorf("Do() error = %v, want %v", err, context.DeadlineExceeded)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := s.Do(ctx, GetDeviceID); !errors.Is(err, context.Canceled) {
		t.Errorf("Do() error = %v, want %v", err, context.Canceled)
	}
}
