package resource

import (
	"fmt"
	"hash/crc32"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// ETag is the strong ETag of a body. A CRC of 64 bits, made of two of 32 bits that
// processors have instructions for and whose polynomials have no factor in common,
// tells bodies apart for sure where they differ in one stretch of up to eight
// bytes, and costs a fraction of a cryptographic hash.
func ETag(body []byte) string {
	return fmt.Sprintf(`"%08x%08x"`, crc32.Checksum(body, castagnoli), crc32.ChecksumIEEE(body))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FormatETag is an ETag as a vendor's service writes it. The zero ETags writes a
// strong one, as it stands.
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
