package redfish

import (
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

// variant is a page as this vendor's service shows it at times; nil for one
// that it shows as it is.
func (x *request) variant(p *render.Representation) *render.Representation {
	as := &x.host.Dialect().Protocol
	if len(as.ErrorPrefixes) == 0 && as.EmptyCollectionsAfterBoot == 0 || p.MediaType != resource.JSON {
		return nil
	}
	if as.EmptyCollectionsAfterBoot > 0 && strings.HasSuffix(resource.TypeName(x.match.Schema), "Collection") && x.justStarted(as) {
		return x.withoutMembers(p)
	}
	return x.withErrorPrefix(p, as.ErrorPrefixes)
}

// justStarted says whether the BMC came up so lately that it does not know its
// resources.
func (x *request) justStarted(as *dialect.Protocol) bool {
	life := x.host.BMC().Life
	return life != nil && !life.Up.IsZero() && x.host.Now().Sub(life.Up) < as.EmptyCollectionsAfterBoot
}

// withoutMembers is the page of a collection without its members.
func (x *request) withoutMembers(p *render.Representation) *render.Representation {
	o := resource.Decode(p.Body)
	o["Members"], o["Members@odata.count"] = []any{}, 0
	delete(o, "Members@odata.nextLink")
	return p.With(resource.Encode(o))
}

// withErrorPrefix is a page before which an error stands, in the same body.
func (x *request) withErrorPrefix(p *render.Representation, all []dialect.ErrorPrefix) *render.Representation {
	i := slices.IndexFunc(all, func(f dialect.ErrorPrefix) bool { return f.ResourceType == resource.TypeName(x.match.Schema) })
	if i < 0 {
		return nil
	}
	return p.With(append(append(x.vendor().Error(vendor.NewMessage(all[i].Message)), '\n'), p.Body...))
}
