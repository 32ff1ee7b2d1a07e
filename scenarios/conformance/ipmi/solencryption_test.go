package ipmi

import (
	"errors"
	"testing"
	"time"
)

// Suspend/Resume Payload Encryption (§24.3) changes the encryption of SOL packets
// in both directions, and of nothing else (statement I65).
func TestSOLEncryptionIsSuspendedAndResumed(t *testing.T) {
	_, target := emulated(t, "suites: [17, 3, 2]")
	s := target.session(t)
	const suspend, resume, renew = 0, 1, 2
	change := func(want Code, session *Session, payload, instance, operation byte) {
		t.Helper()
		r := Request{NetFn: App, Command: 0x55, Data: []byte{payload, instance, operation}, Name: "Suspend/Resume Payload Encryption"}
		if _, err := session.Do(t.Context(), r); want == OK && err != nil || want != OK && !errors.Is(err, want) {
			t.Errorf("payload %d, instance %d, operation %d: error = %v, want %v", payload, instance, operation, err, want)
		}
	}
	change(0x80, s, byte(PayloadIPMI), 1, suspend)
	change(0x83, s, byte(PayloadSOL), 1, suspend)
	c, err := s.Console(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	change(0xCC, s, byte(PayloadSOL), 2, suspend)
	change(0xCC, s, byte(PayloadSOL), 1, 3)

	// answer sends a character, encrypted or not, and returns how its
	// acknowledgement comes.
	answer := func(encrypted bool) string {
		t.Helper()
		s.conn.Tamper.Header = func(h *Header) { h.Encrypted = encrypted }
		sent := solPacket{sequence: c.next(), data: []byte("x")}
		b, err := c.packet(sent)
		s.conn.Tamper.Header = nil
		if err == nil {
			err = s.conn.Send(b)
		}
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := s.conn.Receive(t.Context(), 300*time.Millisecond)
			if errors.Is(err, ErrNoAnswer) {
				return "not at all"
			}
			if err != nil {
				t.Fatal(err)
			}
			kind, body, err := s.open(b)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := parseSOL(body); kind != PayloadSOL || err != nil || p.ack != sent.sequence {
				continue
			}
			if p, _ := parsePacket(b); p.Encrypted {
				return "encrypted"
			}
			return "plain"
		}
	}
	want := func(when, ifEncrypted, ifPlain string) {
		t.Helper()
		if got := answer(true); got != ifEncrypted {
			t.Errorf("%s: an encrypted packet is acknowledged %s, want %s", when, got, ifEncrypted)
		}
		if got := answer(false); got != ifPlain {
			t.Errorf("%s: a plain packet is acknowledged %s, want %s", when, got, ifPlain)
		}
	}
	want("activated", "encrypted", "not at all")
	change(0x81, s, byte(PayloadSOL), 1, suspend)
	want("refused", "encrypted", "not at all")
	// Without Force Payload Encryption (SOL parameter 2) the console decides.
	if _, err := s.Do(t.Context(), Request{NetFn: Transport, Command: 0x21, Data: []byte{1, 2, 0x04}, Name: "Set SOL Configuration Parameters"}); err != nil {
		t.Fatal(err)
	}
	change(OK, s, byte(PayloadSOL), 1, suspend)
	want("suspended", "not at all", "plain")
	change(OK, s, byte(PayloadSOL), 1, renew)
	want("suspended, with a new initialization vector", "not at all", "plain")
	change(OK, s, byte(PayloadSOL), 1, resume)
	want("resumed", "encrypted", "not at all")
	change(OK, s, byte(PayloadSOL), 1, renew)
	want("resumed, with a new initialization vector", "encrypted", "not at all")

	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	p := &probe{Target: target}
	defer p.close(t.Context())
	conn, err := p.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := p.closeAfter(conn.Login(t.Context(), p.login(2)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Raise(t.Context(), Administrator); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Console(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	change(0x82, plain, byte(PayloadSOL), 1, suspend)
	change(0x82, plain, byte(PayloadSOL), 1, resume)
}
