package gpt

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Types of partitions.
var (
	ESP       = MustParse("C12A7328-F81F-11D2-BA4B-00A0C93EC93B") // UEFI 2.10, table 5.7
	LinuxData = MustParse("0FC63DAF-8483-4772-8E79-3D69D8477DE4") // sgdisk's default
)

// GUID is a GUID as on disks: the first three fields are little-endian (UEFI 2.10,
// appendix A).
type GUID [16]byte

// FromUUID returns the GUID of a UUID in the order of RFC 9562.
func FromUUID(id [16]byte) GUID {
	slices.Reverse(id[0:4])
	slices.Reverse(id[4:6])
	slices.Reverse(id[6:8])
	return id
}

// MustParse parses the text form of a GUID that the program contains.
func MustParse(text string) GUID {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != len(GUID{}) {
		panic(fmt.Sprintf("gpt: GUID %q: %v", text, err))
	}
	return FromUUID([16]byte(b))
}

// String returns the text form in lower case, as udev has it.
func (g GUID) String() string {
	b := FromUUID(g) // the exchange is its own inverse
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
