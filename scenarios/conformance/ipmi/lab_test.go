package ipmi

import (
	"errors"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/labtest"
)

// emulated is a BMC of the emulator.
func emulated(t *testing.T, c lab.Config) (*labtest.Lab, Target) {
	t.Helper()
	l := labtest.Start(t, c)
	h := l.First()
	at, ok := h.IPMI()
	if !ok {
		t.Fatal("the BMC's IPMI is off")
	}
	user, password := l.Credentials(h)
	return l, Target{Address: at.String(), Admin: Account{user, password}, Timeout: 300 * time.Millisecond}
}

// The emulator does all that a BMC must.
func TestEmulator(t *testing.T) {
	_, target := emulated(t, lab.Config{})
	p := &probe{Target: target}
	defer p.close(t.Context())
	s, err := p.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), GetDeviceID); errors.Is(err, InvalidCommand) {
		t.Skip("the emulator cannot tell its device ID yet")
	}
	for _, r := range Run(t.Context(), target, Checks()) {
		t.Logf("%-5s %s %s %s", r.Verdict, r.Name, r.Took, r.Detail)
		if r.Verdict != Pass && r.Verdict != Skip {
			t.Errorf("%s: %s: %s", r.Name, r.Verdict, r.Detail)
		}
	}
}
