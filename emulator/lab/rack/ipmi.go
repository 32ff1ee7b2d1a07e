package rack

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// IPMI is how the BMCs of a group speak IPMI as new, where that shall be other
// than usual: weaker, for programs that look for such BMCs, or with a key.
type IPMI struct {
	// Suites are the cipher suites that are taken, by their numbers, best first.
	Suites []int `json:"suites,omitempty"`
	// V15 are the authentication types of IPMI 1.5 that are taken, for all
	// privileges.
	V15 []string `json:"v15,omitempty"`
	// KG is the BMC's key: up to 20 characters, or 0x and 40 hexadecimal digits.
	KG string `json:"kg,omitempty"`
	// AdvertisedPort is the UDP port that clients are told to find serial over
	// LAN at, where something on the way maps ports; 0: that which they reach.
	AdvertisedPort int `json:"advertisedPort,omitempty"`
}

// authTypes are the types of IPMI 1.5 with their bits (IPMI v2.0 rev 1.1, table
// 23-4, parameter 2).
var authTypes = map[string]byte{"none": 1 << 0, "md2": 1 << 1, "md5": 1 << 2, "password": 1 << 4}

// authNames are their names.
var authNames = []string{"none", "md2", "md5", "password"}

const (
	maxSuites = 16
	maxSuite  = 17
	keyLength = 20 // bytes
)

// problems says what is wrong with it, by field.
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
			return nil, fmt.Errorf("rack: key: too long or not printable")
		}
		text = hex.EncodeToString([]byte(i.KG))
		text += strings.Repeat("0", 2*keyLength-len(text))
	}
	key, err := hex.DecodeString(text)
	if err == nil && len(key) != keyLength {
		err = fmt.Errorf("rack: key: %d bytes", len(key))
	}
	return key, err
}

// Key is KG as bytes, filled with zeros; nil: none.
func (i *IPMI) Key() []byte {
	if i == nil || i.KG == "" {
		return nil
	}
	key, err := i.key()
	if err != nil {
		return nil // Validate has told
	}
	return key
}

// AuthTypes are the bits of V15 by privilege, from callback to OEM; nil: none.
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

// Text tells one from another: it is the same for the same.
func (i *IPMI) Text() string {
	if i == nil {
		return ""
	}
	b, err := json.Marshal(i)
	if err != nil {
		return err.Error() // numbers and texts have none
	}
	return string(b)
}
