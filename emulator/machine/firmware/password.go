package firmware

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Secret is a digest of a password that was set.
type Secret struct {
	Name   string `json:"name"` // name of its attribute
	Digest string `json:"digest"`
}

func digest(name, password string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "metalab/firmware/%d:%s%s", len(name), name, password))
	return hex.EncodeToString(sum[:])
}

// secret returns a password's digest; false when none is set.
func (s *State) secret(name string) (string, bool) {
	if s == nil {
		return "", false
	}
	for _, p := range s.Passwords {
		if p.Name == name {
			return p.Digest, true
		}
	}
	return "", false
}

// matches compares a password with the one that is set, in constant time.
func (s *State) matches(name, password string) bool {
	want, ok := s.secret(name)
	return ok && subtle.ConstantTimeCompare([]byte(want), []byte(digest(name, password))) == 1
}

// Guard returns the attribute of the password that protects the settings: the
// first one in the registry that is set; "" when none is.
func (v View) Guard() string {
	for i := range v.Model.Registry().Attributes {
		a := &v.Model.Registry().Attributes[i]
		if _, ok := v.st.secret(a.Name); ok && a.Type == PasswordType {
			return a.Name
		}
	}
	return ""
}

// guard checks the password that protects the settings.
func (f *Firmware) guard(password string) error {
	name := f.View().Guard()
	if name == "" || f.st.matches(name, password) {
		return nil
	}
	return &PasswordError{Name: name, Missing: password == ""}
}

// ChangePassword sets a BIOS password, or removes it with an empty New. Old is
// the present password, or the one that protects the settings.
type ChangePassword struct{ Name, Old, New string }

func (c ChangePassword) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	a := f.model.Registry().Attribute(c.Name)
	if a == nil || a.Type != PasswordType {
		return nil, fmt.Errorf("%w: password %q", ErrUnknown, c.Name)
	}
	_, set := f.st.secret(c.Name)
	guard := f.View().Guard()
	switch {
	case set && !f.st.matches(c.Name, c.Old) && !f.st.matches(guard, c.Old):
		return nil, &PasswordError{Name: c.Name, Missing: c.Old == ""}
	case !set && guard != "" && !f.st.matches(guard, c.Old):
		return nil, &PasswordError{Name: guard, Missing: c.Old == ""}
	case !set && guard == "" && c.Old != "":
		return nil, &PasswordError{Name: c.Name} // an old password was given, but none is set
	}
	if c.New != "" {
		if fault := f.model.Registry().rules(f.View().value).fitsText(a, c.New); fault != "" {
			return nil, AttributeErrors{{Name: c.Name, Fault: fault, Of: a}}
		}
	}
	st := f.edit()
	st.Passwords = slices.DeleteFunc(slices.Clone(st.Passwords), func(s Secret) bool { return s.Name == c.Name })
	if c.New != "" {
		st.Passwords = append(st.Passwords, Secret{Name: c.Name, Digest: digest(c.Name, c.New)})
		slices.SortFunc(st.Passwords, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
	}
	if len(st.Passwords) == 0 {
		st.Passwords = nil
	}
	f.keep(st)
	return f.note(now, event.PasswordChanged, system, c.Name), nil
}
