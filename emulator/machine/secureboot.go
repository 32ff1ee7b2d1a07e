package machine

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// SecureBootModel is the factory state of secure boot.
type SecureBootModel struct {
	Enabled bool       `json:"enabled"` // secure boot is enabled by default
	Keys    []ModelKey `json:"keys"`    // factory content of the key databases
	Owner   string     `json:"owner"`   // UUID of the owner of the factory keys
}

// ModelKey is a factory entry of a key database: a certificate or a program's
// digest.
type ModelKey struct {
	Database string `json:"database"` // PK, KEK, db or dbx
	PEM      string `json:"pem"`      // certificate
	SHA256   string `json:"sha256"`   // digest of a program, in hexadecimal
}

// KeyDatabases lists the databases of secure boot (UEFI 2.10, §32.3 and
// §32.4). Those that end in Default hold the factory keys.
var KeyDatabases = []string{"PK", "KEK", "db", "dbx", "PKDefault", "KEKDefault", "dbDefault", "dbxDefault"}

// platformKey is the database that holds the platform key.
const platformKey = "PK"

// KeyMode is the secure boot mode; the values are Redfish's (DSP2046,
// SecureBoot.SecureBootMode).
type KeyMode string

// The modes.
const (
	SetupMode KeyMode = "SetupMode" // no platform key: anybody can change the keys
	UserMode  KeyMode = "UserMode"
)

// SecureBoot holds what differs from the factory state.
type SecureBoot struct {
	Enable  bool          `json:"enable"`  // wanted from the next boot on
	Current bool          `json:"current"` // in force in this boot
	Changed []KeyDatabase `json:"changed,omitempty"`
	Next    int           `json:"next"` // number of the next key that is added
}

// KeyDatabase is the content of one database.
type KeyDatabase struct {
	ID   string      `json:"id"`
	Keys []SecureKey `json:"keys"`
}

// SecureKey is a certificate or a signature in a key database.
type SecureKey struct {
	ID    string        `json:"id"`
	DER   []byte        `json:"der,omitempty"`   // certificate
	Type  SignatureType `json:"type,omitempty"`  // type of a signature
	Text  string        `json:"text,omitempty"`  // signature in hexadecimal
	Owner string        `json:"owner,omitempty"` // UUID
}

// SignatureType is the name of a signature GUID (UEFI 2.10, §32.4.1).
type SignatureType string

// signatureBytes maps signature types to lengths.
var signatureBytes = map[SignatureType]int{
	"EFI_CERT_SHA256_GUID": 32, "EFI_CERT_SHA384_GUID": 48, "EFI_CERT_SHA512_GUID": 64, "EFI_CERT_X509_SHA256_GUID": 32,
}

// SignatureTypes lists all signature types.
var SignatureTypes = []SignatureType{"EFI_CERT_SHA256_GUID", "EFI_CERT_SHA384_GUID", "EFI_CERT_SHA512_GUID", "EFI_CERT_X509_SHA256_GUID"}

// Certificate reports whether a key is a certificate.
func (k SecureKey) Certificate() bool { return k.DER != nil }

// factoryKeys returns the factory keys of a database.
func (p *Profile) factoryKeys(database string) []SecureKey {
	database = strings.TrimSuffix(database, "Default")
	var out []SecureKey
	for _, k := range p.SecureBoot.Keys {
		if k.Database != database {
			continue
		}
		key := SecureKey{ID: strconv.Itoa(len(out) + 1), Owner: p.SecureBoot.Owner}
		if block, _ := pem.Decode([]byte(k.PEM)); block != nil {
			key.DER = block.Bytes
		} else {
			key.Type, key.Text = SignatureTypes[0], k.SHA256
		}
		out = append(out, key)
	}
	return out
}

// Keys returns the content of a key database.
func (v *View) Keys(database string) []SecureKey { return v.SecureBoot.keys(v.Profile, database) }

func (s *SecureBoot) keys(p *Profile, database string) []SecureKey {
	for _, d := range s.Changed {
		if d.ID == database {
			return d.Keys
		}
	}
	return p.factoryKeys(database)
}

// KeyMode returns the secure boot mode.
func (v *View) KeyMode() KeyMode { return v.SecureBoot.mode(v.Profile) }

func (s *SecureBoot) mode(p *Profile) KeyMode {
	if len(s.keys(p, platformKey)) == 0 {
		return SetupMode
	}
	return UserMode
}

// secureBoot returns the state of secure boot; the factory state when nothing
// was changed.
func (m *Machine) secureBoot() *SecureBoot {
	if m.st.SecureBoot != nil {
		return m.st.SecureBoot
	}
	if m.profile.SecureBoot.Enabled {
		return factorySecureBootOn
	}
	return factorySecureBootOff
}

var (
	factorySecureBootOn  = &SecureBoot{Enable: true, Current: true, Next: firstKey}
	factorySecureBootOff = &SecureBoot{Next: firstKey}
)

// firstKey is the number of the first key that is added.
const firstKey = 100

// latchSecureBoot decides at the start of a boot whether it verifies what it
// loads.
func (m *Machine) latchSecureBoot() {
	s := *m.secureBoot()
	as, ok := m.fw.View().Acts(firmware.BootMode, "")
	s.Current = s.Enable && s.mode(m.profile) == UserMode && !(ok && Mode(as) == Legacy)
	if s.Current != m.secureBoot().Current {
		m.st.SecureBoot = &s
	}
}

// SetSecureBoot enables or disables secure boot from the next boot on.
type SetSecureBoot struct{ Enable bool }

func (c SetSecureBoot) apply(m *Machine, _ time.Time) ([]Event, error) {
	if s := *m.secureBoot(); s.Enable != c.Enable {
		s.Enable = c.Enable
		m.st.SecureBoot = &s
	}
	return nil, nil
}

// writableKeys reports whether a key database can be changed.
func writableKeys(database string) bool {
	return slices.Contains(KeyDatabases, database) && !strings.HasSuffix(database, "Default")
}

// updateKeys replaces the content of a database.
func (m *Machine) updateKeys(now time.Time, database string, how func([]SecureKey) ([]SecureKey, error)) ([]Event, error) {
	if !writableKeys(database) {
		return nil, fmt.Errorf("key database %q: %w", database, ErrUnknown)
	}
	s := *m.secureBoot()
	keys, err := how(slices.Clone(s.keys(m.profile, database)))
	if err != nil {
		return nil, err
	}
	s.Changed = slices.DeleteFunc(slices.Clone(s.Changed), func(d KeyDatabase) bool { return d.ID == database })
	s.Changed = append(s.Changed, KeyDatabase{ID: database, Keys: keys})
	s.Next++
	m.st.SecureBoot = &s
	return []Event{note(now, event.KeysChanged, database)}, nil
}

// maxKeys is the most keys of a database: firmware variables are small.
const maxKeys = 64

// AddKey adds a certificate or a signature to a key database. Its ID is the
// previous SecureBoot.Next.
type AddKey struct {
	Database string
	Key      SecureKey // without ID
}

var ownerForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (c AddKey) apply(m *Machine, now time.Time) ([]Event, error) {
	return m.updateKeys(now, c.Database, func(keys []SecureKey) ([]SecureKey, error) {
		k := c.Key
		switch {
		case k.Owner != "" && !ownerForm.MatchString(k.Owner):
			return nil, fmt.Errorf("owner %q of a key: must be a UUID: %w", k.Owner, ErrUnknown)
		case len(keys) >= maxKeys || c.Database == platformKey && len(keys) > 0:
			return nil, fmt.Errorf("%w: %s has no room for another key", ErrConflict, c.Database)
		case k.Certificate():
			if _, err := x509.ParseCertificate(k.DER); err != nil {
				return nil, fmt.Errorf("certificate for %s: %w: %w", c.Database, ErrUnknown, err)
			}
		default:
			raw, err := hex.DecodeString(k.Text)
			if n, ok := signatureBytes[k.Type]; err != nil || !ok || len(raw) != n || !TakesSignatures(c.Database) {
				return nil, fmt.Errorf("signature of type %q for %s: %w", k.Type, c.Database, ErrUnknown)
			}
			k.Text = strings.ToLower(k.Text)
		}
		for _, is := range keys {
			if is.Text == k.Text && is.Type == k.Type && bytes.Equal(is.DER, k.DER) {
				return nil, fmt.Errorf("%w: %s has that key", ErrConflict, c.Database)
			}
		}
		k.ID = strconv.Itoa(m.secureBoot().Next)
		return append(keys, k), nil
	})
}

// TakesSignatures reports whether a database can hold signatures besides
// certificates.
func TakesSignatures(database string) bool { return strings.HasPrefix(database, "db") }

// RemoveKey removes a key from a database.
type RemoveKey struct{ Database, ID string }

func (c RemoveKey) apply(m *Machine, now time.Time) ([]Event, error) {
	return m.updateKeys(now, c.Database, func(keys []SecureKey) ([]SecureKey, error) {
		left := slices.DeleteFunc(slices.Clone(keys), func(k SecureKey) bool { return k.ID == c.ID })
		if len(left) == len(keys) {
			return nil, fmt.Errorf("key %q of %s: %w", c.ID, c.Database, ErrUnknown)
		}
		return left, nil
	})
}

// ResetKeys restores the factory keys of databases, or deletes all their keys.
type ResetKeys struct {
	Databases []string
	Delete    bool
}

func (c ResetKeys) apply(m *Machine, now time.Time) ([]Event, error) {
	var evs []Event
	for _, d := range c.Databases {
		more, err := m.updateKeys(now, d, func([]SecureKey) ([]SecureKey, error) {
			if c.Delete {
				return nil, nil
			}
			return m.profile.factoryKeys(d), nil
		})
		if err != nil {
			return nil, err
		}
		evs = append(evs, more...)
	}
	return evs, nil
}

// checkSecureBoot reports errors in the profile's secureBoot section.
func (p *Profile) checkSecureBoot(need func(ok bool, field, must string, args ...any)) {
	need(p.SecureBoot.Owner == "" || ownerForm.MatchString(p.SecureBoot.Owner), "secureBoot.owner", "be a UUID")
	for i, k := range p.SecureBoot.Keys {
		need(writableKeys(k.Database), "secureBoot.keys[%d].database", "be PK, KEK, db or dbx", i)
		block, _ := pem.Decode([]byte(k.PEM))
		raw, err := hex.DecodeString(k.SHA256)
		if block == nil {
			need(err == nil && len(raw) == 32 && TakesSignatures(k.Database), "secureBoot.keys[%d]", "have the pem of a certificate, or a sha256", i)
			continue
		}
		_, err = x509.ParseCertificate(block.Bytes)
		need(err == nil && k.SHA256 == "", "secureBoot.keys[%d].pem", "be a certificate", i)
	}
}
