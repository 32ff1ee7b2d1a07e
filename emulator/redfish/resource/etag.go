package resource

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

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

// StrongETag returns an ETag in quotes and without the prefix W/, whichever form the
// vendor writes.
func StrongETag(etag string) string {
	if rest, weak := strings.CutPrefix(etag, "W/"); weak {
		return rest
	}
	return `"` + strings.Trim(etag, `"`) + `"`
}

// GzipETag returns the ETag of the gzip form of a representation whose identity form
// has an ETag; "" when that has none. They differ because the bytes do (RFC 9110,
// §8.8.3.3).
func GzipETag(etag string) string {
	begin, quoted := strings.CutSuffix(etag, `"`)
	if !quoted {
		return etag
	}
	return begin + `-gzip"`
}

// ETagComparison is a way to compare ETags (RFC 9110, §8.8.3.2).
type ETagComparison bool

// The ways to compare ETags.
const (
	StrongComparison ETagComparison = false // a weak ETag equals no other
	WeakComparison   ETagComparison = true
)

// MatchesETag reports whether an If-Match or If-None-Match header names an ETag, or
// any with "*" (RFC 9110, §13.1).
func MatchesETag(header []string, etag string, how ETagComparison) bool {
	for _, line := range header {
		for {
			line = strings.TrimLeft(line, ", \t")
			if line == "" {
				break
			}
			if line[0] == '*' {
				return true
			}
			rest, weak := strings.CutPrefix(line, "W/")
			if !strings.HasPrefix(rest, `"`) {
				break // not an ETag: where the next one begins is unknown
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				break
			}
			tag := rest[:end+2]
			line = strings.TrimLeft(rest[end+2:], " \t")
			if line != "" && line[0] != ',' {
				break // text after the closing quote: not an ETag
			}
			if tag == etag && (how == WeakComparison || !weak) {
				return true
			}
		}
	}
	return false
}

// MatchesAnyETag reports whether an If-Match or If-None-Match header is "*".
func MatchesAnyETag(header []string) bool {
	return slices.ContainsFunc(header, func(line string) bool { return strings.TrimSpace(line) == "*" })
}
