package redfish

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// otherwise is a page as this vendor's service shows it at times; nil for one
// that it shows as it is.
func (x *exchange) otherwise(p *representation) *representation {
	as := &x.host.Dialect().Protocol
	if len(as.ErrorPrefixes) == 0 && as.EmptyCollectionsAfterBoot == 0 || p.mime != jsonType {
		return nil
	}
	if as.EmptyCollectionsAfterBoot > 0 && strings.HasSuffix(typeName(x.match.schema), "Collection") && x.young(as) {
		return x.bereft(p)
	}
	return x.prefaced(p, as.ErrorPrefixes)
}

// young says whether the BMC came up so lately that it does not know its
// resources.
func (x *exchange) young(as *dialect.Protocol) bool {
	life := x.host.BMC().Life
	return life != nil && !life.Up.IsZero() && x.host.Now().Sub(life.Up) < as.EmptyCollectionsAfterBoot
}

// bereft is the page of a collection without its members.
func (x *exchange) bereft(p *representation) *representation {
	o := decode(p.body)
	o["Members"], o["Members@odata.count"] = []any{}, 0
	delete(o, "Members@odata.nextLink")
	return p.with(encode(o))
}

// prefaced is a page before which an error stands, in the same body.
func (x *exchange) prefaced(p *representation, all []dialect.ErrorPrefix) *representation {
	i := slices.IndexFunc(all, func(f dialect.ErrorPrefix) bool { return f.ResourceType == typeName(x.match.schema) })
	if i < 0 {
		return nil
	}
	return p.with(append(append(x.vendor().Error(says(all[i].Message)), '\n'), p.body...))
}
