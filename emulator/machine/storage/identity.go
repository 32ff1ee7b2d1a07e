package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Drives and volumes that come to be have an identity that follows from their
// controller's serial number and from how many came before, so that a lab that
// is made again and treated alike has the same ones.

func drawn(serial, kind string, n int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", serial, kind, n))
}

// driveIdentity is the serial number and the WWN of the n-th drive that came
// after those of the profile. The WWN is locally assigned (NAA 3; T10 SPC-5,
// §7.7.6.4) and is none of the profile's, which have zeros in the digits that
// are 40 to 7f here.
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

// volumeWWN is the WWN of the n-th volume of a server: NAA 6 of 32 digits as
// RAID controllers make them, of a locally administered organisation (T10
// SPC-5, §7.7.6.6).
func volumeWWN(controller string, n int) string {
	sum := drawn(controller, "volume", n)
	return "602" + hex.EncodeToString(sum[:])[:29]
}
