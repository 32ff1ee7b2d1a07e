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

// SecureBootModel is what of secure boot a model comes with.
type SecureBootModel struct {
	Enabled bool       `json:"enabled"`
	Keys    []ModelKey `json:"keys"`
	Owner   string     `json:"owner"` // UUID that signs for what is in the databases from the beginning
}

// ModelKey is a certificate or the digest of a program in a key database.
type ModelKey struct {
	Database string `json:"database"`
	PEM      string `json:"pem"`    // of a certificate
	SHA256   string `json:"sha256"` // of a program, in hexadecimal
}

// KeyDatabases are the databases of secure boot (UEFI 2.10, §32.3 and §32.4).
// Those that end in Default hold what the model came with.
var KeyDatabases = []string{"PK", "KEK", "db", "dbx", "PKDefault", "KEKDefault", "dbDefault", "dbxDefault"}

// platformKey is the database whose only certificate makes the platform
// somebody's.
const platformKey = "PK"

// KeyMode is who may change the keys; the values are Redfish's (DSP2046,
// SecureBoot.SecureBootMode).
type KeyMode string

// The modes.
const (
	SetupMode KeyMode = "SetupMode" // anybody: there is no platform key
	UserMode  KeyMode = "UserMode"
)

// SecureBoot is what differs from what the model came with.
type SecureBoot struct {
	Enable  bool          `json:"enable"`  // wanted from the next boot on
	Current bool          `json:"current"` // of this boot
	Changed []KeyDatabase `json:"changed,omitempty"`
	Next    int           `json:"next"` // number of the next key that comes
}

// KeyDatabase is one database and all that is in it.
type KeyDatabase struct {
	ID   string      `json:"id"`
	Keys []SecureKey `json:"keys"`
}

// SecureKey is a certificate or a signature in a key database.
type SecureKey struct {
	ID    string        `json:"id"`
	DER   []byte        `json:"der,omitempty"`   // of a certificate
	Type  SignatureType `json:"type,omitempty"`  // of a signature
	Text  string        `json:"text,omitempty"`  // of a signature, in hexadecimal
	Owner string        `json:"owner,omitempty"` // UUID
}

// SignatureType is a GUID's name (UEFI 2.10, §32.4.1).
type SignatureType string

// signatureBytes are the types of signatures, and how long each is.
var signatureBytes = map[SignatureType]int{
	"EFI_CERT_SHA256_GUID": 32, "EFI_CERT_SHA384_GUID": 48, "EFI_CERT_SHA512_GUID": 64, "EFI_CERT_X509_SHA256_GUID": 32,
}

// SignatureTypes are all of them.
var SignatureTypes = []SignatureType{"EFI_CERT_SHA256_GUID", "EFI_CERT_SHA384_GUID", "EFI_CERT_SHA512_GUID", "EFI_CERT_X509_SHA256_GUID"}

// Certificate says whether a key is a certificate.
func (k SecureKey) Certificate() bool { return k.DER != nil }

// came are the keys that a database of the model has.
func (p *Profile) came(database string) []SecureKey {
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

// Keys are what is in a key database.
func (v *View) Keys(database string) []SecureKey { return v.SecureBoot.keys(v.Profile, database) }

func (s *SecureBoot) keys(p *Profile, database string) []SecureKey {
	for _, d := range s.Changed {
		if d.ID == database {
			return d.Keys
		}
	}
	return p.came(database)
}

// KeyMode is who may change the keys.
func (v *View) KeyMode() KeyMode { return v.SecureBoot.mode(v.Profile) }

func (s *SecureBoot) mode(p *Profile) KeyMode {
	if len(s.keys(p, platformKey)) == 0 {
		return SetupMode
	}
	return UserMode
}

// secure is the state of secure boot, as the model came if nothing was changed.
func (m *Machine) secure() *SecureBoot {
	if m.st.SecureBoot != nil {
		return m.st.SecureBoot
	}
	if m.profile.SecureBoot.Enabled {
		return secureAsMade
	}
	return insecureAsMade
}

var (
	secureAsMade   = &SecureBoot{Enable: true, Current: true, Next: firstKey}
	insecureAsMade = &SecureBoot{Next: firstKey}
)

// firstKey is the number of the first key that did not come with the model.
const firstKey = 100

// bootSecurely decides whether this boot checks what it loads.
func (m *Machine) bootSecurely() {
	s := *m.secure()
	as, ok := m.fw.View().Acts(firmware.BootMode, "")
	s.Current = s.Enable && s.mode(m.profile) == UserMode && !(ok && Mode(as) == Legacy)
	if s.Current != m.secure().Current {
		m.st.SecureBoot = &s
	}
}

// SetSecureBoot says whether boots are to check what they load, from the next
// on.
type SetSecureBoot struct{ Enable bool }

func (c SetSecureBoot) apply(m *Machine, _ time.Time) ([]Event, error) {
	if s := *m.secure(); s.Enable != c.Enable {
		s.Enable = c.Enable
		m.st.SecureBoot = &s
	}
	return nil, nil
}

// writable says whether a key database can be changed.
func writableKeys(database string) bool {
	return slices.Contains(KeyDatabases, database) && !strings.HasSuffix(database, "Default")
}

// changeKeys puts other keys into a database.
func (m *Machine) changeKeys(now time.Time, database string, how func([]SecureKey) ([]SecureKey, error)) ([]Event, error) {
	if !writableKeys(database) {
		return nil, fmt.Errorf("machine: key database %q: %w", database, ErrUnknown)
	}
	s := *m.secure()
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

// maxKeys bounds a key database: variables of the firmware are small.
const maxKeys = 64

// AddKey puts a certificate, or a signature, into a key database. Its ID is the
// number that SecureBoot.Next was.
type AddKey struct {
	Database string
	Key      SecureKey // without an ID
}

var ownerForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (c AddKey) apply(m *Machine, now time.Time) ([]Event, error) {
	return m.changeKeys(now, c.Database, func(keys []SecureKey) ([]SecureKey, error) {
		k := c.Key
		switch {
		case k.Owner != "" && !ownerForm.MatchString(k.Owner):
			return nil, fmt.Errorf("machine: owner %q of a key: must be a UUID: %w", k.Owner, ErrUnknown)
		case len(keys) >= maxKeys || c.Database == platformKey && len(keys) > 0:
			return nil, fmt.Errorf("%w: %s has no room for another key", ErrConflict, c.Database)
		case k.Certificate():
			if _, err := x509.ParseCertificate(k.DER); err != nil {
				return nil, fmt.Errorf("machine: certificate for %s: %w: %w", c.Database, ErrUnknown, err)
			}
		default:
			raw, err := hex.DecodeString(k.Text)
			if n, ok := signatureBytes[k.Type]; err != nil || !ok || len(raw) != n || !TakesSignatures(c.Database) {
				return nil, fmt.Errorf("machine: signature of type %q for %s: %w", k.Type, c.Database, ErrUnknown)
			}
			k.Text = strings.ToLower(k.Text)
		}
		for _, is := range keys {
			if is.Text == k.Text && is.Type == k.Type && bytes.Equal(is.DER, k.DER) {
				return nil, fmt.Errorf("%w: %s has that key", ErrConflict, c.Database)
			}
		}
		k.ID = strconv.Itoa(m.secure().Next)
		return append(keys, k), nil
	})
}

// TakesSignatures says whether a database can hold signatures, beside
// certificates.
func TakesSignatures(database string) bool { return strings.HasPrefix(database, "db") }

// RemoveKey takes a key out of a database.
type RemoveKey struct{ Database, ID string }

func (c RemoveKey) apply(m *Machine, now time.Time) ([]Event, error) {
	return m.changeKeys(now, c.Database, func(keys []SecureKey) ([]SecureKey, error) {
		left := slices.DeleteFunc(slices.Clone(keys), func(k SecureKey) bool { return k.ID == c.ID })
		if len(left) == len(keys) {
			return nil, fmt.Errorf("machine: key %q of %s: %w", c.ID, c.Database, ErrUnknown)
		}
		return left, nil
	})
}

// ResetKeys makes databases what the model came with, or empties them.
type ResetKeys struct {
	Databases []string
	Delete    bool
}

func (c ResetKeys) apply(m *Machine, now time.Time) ([]Event, error) {
	var evs []Event
	for _, d := range c.Databases {
		more, err := m.changeKeys(now, d, func([]SecureKey) ([]SecureKey, error) {
			if c.Delete {
				return nil, nil
			}
			return m.profile.came(d), nil
		})
		if err != nil {
			return nil, err
		}
		evs = append(evs, more...)
	}
	return evs, nil
}

// checkSecureBoot says what is wrong with what a profile says of it.
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
