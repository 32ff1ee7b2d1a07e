package rackfile

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// IPMI changes how the BMCs of a group implement IPMI when they are new: with weaker
// security, for programs that look for such BMCs, or with a key.
type IPMI struct {
	// Suites are the IDs of the cipher suites that the BMCs accept, the best first, of
	// those that their dialect has: 0 to 17, at most 16.
	Suites []int `json:"suites,omitempty"`
	// V15 are the authentication types of IPMI 1.5 that the BMCs accept at each
	// privilege level: none, md2, md5, password.
	V15 []string `json:"v15,omitempty"`
	// KG is the key K_G of the BMCs: up to 20 printable characters, or 0x and 40
	// hexadecimal digits.
	KG string `json:"kg,omitempty"`
	// AdvertisedPort is the UDP port that Activate Payload names for serial over LAN,
	// for networks that map ports; 0 is the port that the client has reached.
	AdvertisedPort int `json:"advertisedPort,omitempty"`
}

// authTypes has the bits of the authentication types of IPMI 1.5 (IPMI v2.0 rev 1.1, table
// 23-4, parameter 2).
var authTypes = map[string]byte{"none": 1 << 0, "md2": 1 << 1, "md5": 1 << 2, "password": 1 << 4}

// authNames has the names of the authentication types in their order.
var authNames = []string{"none", "md2", "md5", "password"}

const (
	maxSuites = 16
	maxSuite  = 17
	keyLength = 20 // bytes
)

// Validate returns an error that names a wrong field.
func (i *IPMI) Validate() (err error) {
	i.problems(func(ok bool, field, text string, args ...any) {
		if !ok && err == nil {
			err = fmt.Errorf("%s: "+text, append([]any{field}, args...)...)
		}
	})
	return err
}

// problems calls need for each check, with the field below ipmi.
func (i *IPMI) problems(need func(ok bool, field, text string, args ...any)) {
	if i == nil {
		return
	}
	need(len(i.Suites) <= maxSuites, "suites", "%d: a BMC has at most %d", len(i.Suites), maxSuites)
	for n, s := range i.Suites {
		at := fmt.Sprintf("suites[%d]", n)
		need(s >= 0 && s <= maxSuite, at, "%d: must be 0 to %d", s, maxSuite)
		need(!slices.Contains(i.Suites[:n], s), at, "%d: is there twice", s)
	}
	for n, s := range i.V15 {
		need(authTypes[s] != 0, fmt.Sprintf("v15[%d]", n), "%q: must be one of %s", s, strings.Join(authNames, ", "))
	}
	_, err := i.key()
	need(err == nil, "kg", "use up to 20 printable characters, or 0x and 40 hexadecimal digits")
	need(i.AdvertisedPort >= 0 && i.AdvertisedPort <= 65535, "advertisedPort", "%d: must be 1 to 65535", i.AdvertisedPort)
}

func (i *IPMI) key() ([]byte, error) {
	text, isHex := strings.CutPrefix(i.KG, "0x")
	if !isHex {
		if !printable(i.KG, keyLength) {
			return nil, fmt.Errorf("key: too long or not printable")
		}
		text = hex.EncodeToString([]byte(i.KG))
		text += strings.Repeat("0", 2*keyLength-len(text))
	}
	key, err := hex.DecodeString(text)
	if err == nil && len(key) != keyLength {
		err = fmt.Errorf("key: %d bytes", len(key))
	}
	return key, err
}

// Key returns KG as 20 bytes, padded with zeros; nil without a key.
func (i *IPMI) Key() []byte {
	if i == nil || i.KG == "" {
		return nil
	}
	key, err := i.key()
	if err != nil {
		return nil // Validate reports it
	}
	return key
}

// AuthTypes returns the bits of V15 for each privilege level, from callback to OEM;
// nil without V15.
func (i *IPMI) AuthTypes() []byte {
	if i == nil || len(i.V15) == 0 {
		return nil
	}
	var all byte
	for _, s := range i.V15 {
		all |= authTypes[s]
	}
	return []byte{all, all, all, all, all}
}

// Text returns a text that is equal for equal settings.
func (i *IPMI) Text() string {
	if i == nil {
		return ""
	}
	b, err := json.Marshal(i)
	if err != nil {
		return err.Error() // numbers and texts can always be marshalled
	}
	return string(b)
}
