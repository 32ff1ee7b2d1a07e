package redfish

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// prefaced is a page before which an error stands, in the same body; nil for one
// that this vendor's service shows as it is.
func (x *exchange) prefaced(p *page) *page {
	all := x.host.Dialect().Protocol.Prefaced
	if len(all) == 0 || p.mime != jsonType {
		return nil
	}
	i := slices.IndexFunc(all, func(f dialect.Preface) bool { return f.Of == typeName(x.match.schema) })
	if i < 0 {
		return nil
	}
	body := append(append(x.error(says(all[i].Says)), '\n'), p.body...)
	both := newPage(p.mime, body, p.etag, p.link)
	both.allow = p.allow
	return both
}
