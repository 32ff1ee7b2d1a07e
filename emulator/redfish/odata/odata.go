// Package odata owns the query parameters of a read (DSP0266, "Query
// parameters"): which of them a service carries out, and which it must refuse.
// It knows no resource and no HTTP.
package odata

import (
	"net/url"
	"strings"
)

// Features are the query parameters that a service carries out. They answer
// requests and fill ServiceRoot.ProtocolFeaturesSupported, so that the two
// cannot differ.
type Features struct {
	TopSkip bool // $top and $skip
	Expand  bool // $expand
	Select  bool // $select
	Filter  bool // $filter
	Only    bool // only
	Excerpt bool // excerpt
}

// Unsupported is the first parameter of a query that must be refused: one that
// begins with $ and is not among the features. Others that are not known are
// ignored.
func (f Features) Unsupported(rawQuery string) (parameter string, found bool) {
	for pair := range strings.SplitSeq(rawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if strings.HasPrefix(name, "$") && !f.has(name) {
			return name, true
		}
	}
	return "", false
}

func (f Features) has(name string) bool {
	switch name {
	case "$top", "$skip":
		return f.TopSkip
	case "$expand":
		return f.Expand
	case "$select":
		return f.Select
	case "$filter":
		return f.Filter
	}
	return false
}
