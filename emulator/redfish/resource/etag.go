package resource

import (
	"fmt"
	"hash/crc32"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// ETag returns the strong ETag of a body: two 32-bit CRCs, which processors have
// instructions for and whose polynomials have no common factor, so that together
// they are a 64-bit CRC. Bodies that differ only within eight consecutive bytes
// always have different ETags. It costs a fraction of a cryptographic hash.
func ETag(body []byte) string {
	return fmt.Sprintf(`"%08x%08x"`, crc32.Checksum(body, castagnoli), crc32.ChecksumIEEE(body))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FormatETag returns an ETag in the format of a vendor's service. The zero ETags
// leaves it strong.
func FormatETag(etag string, as dialect.ETags) string {
	switch as.Format {
	case dialect.Weak:
		return "W/" + etag
	case dialect.DoubleQuoted:
		return `"` + etag + `"`
	case dialect.Empty:
		return ""
	}
	return etag
}
