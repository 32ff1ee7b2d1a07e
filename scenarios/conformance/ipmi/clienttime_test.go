package ipmi

import (
	"errors"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// A client pauses between the steps of a login and between two commands for hours of lab
// time, a fraction of a second of real time. Its half-open login and its session time out
// after a minute of client time (IPMI v2.0 rev 1.1, §6.12.15).
func TestLoginsAndSessionsOutlastAPauseInAFastLab(t *testing.T) {
	login, login15 := Login{Name: "ADMIN", Password: "secret", Suite: 17}, Login15{Name: "ADMIN", Password: "secret", Auth: AuthMD5}
	for name, c := range map[string]*clock.Clock{"36000x": clock.NewScaled(racktest.Origin, 36_000), "max": clock.NewJumping(racktest.Origin)} {
		t.Run(name, func(t *testing.T) {
			r, err := rackfile.Parse("rack.yaml", []byte("kind: Lab\naccounts: [{name: ADMIN, password: secret}]\nhosts: [{count: 1, ipmi: {v15: [md5]}}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			l := racktest.Start(t, rack.Config{Rack: &r, Clock: c})
			at, _ := l.First().IPMI()
			pause := func() {
				if err := c.Sleep(t.Context(), time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			dial := func() *Conn {
				conn, err := Dial(t.Context(), at.String())
				must(err)
				t.Cleanup(func() { _ = conn.Close() })
				conn.Timeout, conn.Tries = 200*time.Millisecond, 2
				return conn
			}
			open := func(between func()) (*Handshake, error) {
				h, err := dial().Handshake(login)
				must(err)
				must(h.Open(t.Context()))
				between()
				return h, h.Challenge(t.Context())
			}

			h, err := open(pause)
			must(err)
			pause()
			s, err := h.Prove(t.Context())
			must(err)
			conn := dial()
			temporary, challenge, err := conn.Challenge15(t.Context(), login15)
			must(err)
			pause()
			s15, err := conn.Activate15(t.Context(), login15, temporary, challenge)
			must(err)
			pause()
			for name, s := range map[string]*Session{"2.0": s, "1.5": s15} {
				if _, err := s.Do(t.Context(), GetDeviceID); err != nil {
					t.Errorf("after a pause the session of IPMI %s: %v", name, err)
				}
			}

			minute := func() { c.Advance(time.Minute) }
			if _, err := open(minute); !errors.Is(err, InvalidSessionID) {
				t.Errorf("RAKP 1 a minute after Open Session: %v, want %v", err, InvalidSessionID)
			}
			conn = dial()
			temporary, challenge, err = conn.Challenge15(t.Context(), login15)
			must(err)
			minute()
			if _, err := conn.Activate15(t.Context(), login15, temporary, challenge); err == nil {
				t.Error("Activate Session succeeds a minute after Get Session Challenge")
			}
			for name, s := range map[string]*Session{"2.0": s, "1.5": s15} {
				if _, err := s.Do(t.Context(), GetDeviceID); !errors.Is(err, ErrNoAnswer) {
					t.Errorf("after Advance(2m) the session of IPMI %s: %v, want %v", name, err, ErrNoAnswer)
				}
			}
		})
	}
}
