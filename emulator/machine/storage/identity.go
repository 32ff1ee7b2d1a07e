package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// New drives and volumes have identities that derive from their controller's
// serial number and a counter, so that a rack that is created again and treated
// alike has the same ones.

func drawn(serial, kind string, n int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", serial, kind, n))
}

// driveIdentity returns the serial number and the WWN of the n-th drive after
// those of the profile. The WWN is locally assigned (NAA 3; T10 SPC-5,
// §7.7.6.4) and differs from the profile's, which have zeros in the digits
// that are 40 to 7f here.
func driveIdentity(controller string, n int) (serial, wwn string) {
	const digits = "0123456789ABCDEFGHJKLMNPQRSTVWXYZ"
	sum := drawn(controller, "drive", n)
	b := []byte("D")
	for i := 0; len(b) < 10; i++ {
		b = append(b, digits[int(sum[i])%len(digits)])
	}
	sum[19] = sum[19]&0x3f | 0x40
	return string(b), "3" + hex.EncodeToString(sum[16:])[1:16]
}

// volumeWWN returns the WWN of a server's n-th volume: NAA 6 of 32 digits as
// RAID controllers make them, of a locally administered organization (T10
// SPC-5, §7.7.6.6).
func volumeWWN(controller string, n int) string {
	sum := drawn(controller, "volume", n)
	return "602" + hex.EncodeToString(sum[:])[:29]
}
