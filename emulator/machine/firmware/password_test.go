package firmware

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAPasswordProtectsTheSettings(t *testing.T) {
	b := newBench(t)
	refused := func(c Command, want PasswordError) {
		t.Helper()
		var got *PasswordError
		if _, err := b.f.Apply(b.now, c); !errors.As(err, &got) || *got != want {
			t.Errorf("Apply(%+v) = %v, want %v", c, err, &want)
		}
	}
	off := set("NumLock", "Off")
	b.expect(b.do(ChangePassword{Name: "UserPassword", New: "user secret"}), "bios.password")
	refused(SetAttributes{Settings: off}, PasswordError{"UserPassword", true})
	refused(SetAttributes{Settings: off, Password: "guess"}, PasswordError{"UserPassword", false})
	b.do(SetAttributes{Settings: off, Password: "user secret"})

	refused(ChangePassword{Name: "AdminPassword", New: "admin secret"}, PasswordError{"UserPassword", true})
	b.do(ChangePassword{Name: "AdminPassword", Old: "user secret", New: "admin secret"})
	if got := b.f.View().Guard(); got != "AdminPassword" {
		t.Errorf("Guard() = %s", got)
	}
	refused(SetAttributes{Settings: off, Password: "user secret"}, PasswordError{"AdminPassword", false})
	b.do(SetAttributes{Settings: off, Password: "admin secret"})

	b.do(ChangePassword{Name: "UserPassword", Old: "admin secret", New: "other secret"}) // the higher one does
	b.do(ChangePassword{Name: "UserPassword", Old: "other secret"})
	refused(ChangePassword{Name: "AdminPassword", Old: "guess"}, PasswordError{"AdminPassword", false})
	refused(ChangePassword{Name: "AdminPassword"}, PasswordError{"AdminPassword", true})
	b.do(ChangePassword{Name: "AdminPassword", Old: "admin secret"})
	refused(ChangePassword{Name: "AdminPassword", Old: "admin secret", New: "new secret"}, PasswordError{"AdminPassword", false})
	b.do(SetAttributes{Settings: set("NumLock", "On")})
	if b.f.State() != nil {
		t.Errorf("state = %+v, want none", b.f.State())
	}
}

func TestPasswordsHaveAForm(t *testing.T) {
	for in, want := range map[string]Fault{"abc": TooShort, strings.Repeat("x", 33): TooLong, "tab\tstop": NoMatch} {
		var bad AttributeErrors
		_, err := newBench(t).f.Apply(origin, ChangePassword{Name: "AdminPassword", New: in})
		if !errors.As(err, &bad) || bad[0].Fault != want {
			t.Errorf("New %q: %v, want %v", in, err, want)
		}
		if strings.Contains(err.Error(), in) {
			t.Errorf("%v shows the password", err)
		}
	}
	for _, name := range []string{"BootMode", "Colour", ""} {
		if _, err := newBench(t).f.Apply(origin, ChangePassword{Name: name, New: "secret"}); !errors.Is(err, ErrUnknown) {
			t.Errorf("Name %q: %v, want %v", name, err, ErrUnknown)
		}
	}
}

func TestPasswordsAreNotStored(t *testing.T) {
	b := newBench(t)
	b.do(ChangePassword{Name: "AdminPassword", New: "admin secret"})
	raw, err := json.Marshal(b.f.State())
	if err != nil || strings.Contains(string(raw), "admin secret") {
		t.Errorf("state = %s, %v", raw, err)
	}
}
