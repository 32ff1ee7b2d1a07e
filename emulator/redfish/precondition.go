package redfish

import "strings"

// comparison is how ETags are compared (RFC 9110, §8.8.3.2).
type comparison bool

const (
	strongly comparison = false // a weak one equals nothing
	weakly   comparison = true
)

// matches says whether an If-Match or If-None-Match header names an ETag, or
// any with "*" (RFC 9110, §13.1).
func matches(header []string, etag string, how comparison) bool {
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
				break // no ETag, and what follows cannot be told
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				break
			}
			tag := rest[:end+2]
			if tag == etag && (how == weakly || !weak) {
				return true
			}
			line = rest[end+2:]
		}
	}
	return false
}
