package redfish

import (
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// allow is the Allow header of the address: that of the page that is there, or
// of what stands beside it.
func (x *request) allow(p *render.Representation) []string {
	if x.match.Action != nil || x.match.Members {
		return x.match.Allow
	}
	return p.Allow
}

// allowed is the Allow header of what is there at a time.
func (x *request) allowed(at *resource.Snapshot) []string {
	if x.match.Action != nil || x.match.Members {
		return x.match.Allow
	}
	return x.allow(x.s.renderer.Representation(x.match, at))
}

// verbs are the HTTP methods that Redfish knows (DSP0266, "HTTP methods").
var verbs = []string{"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}
