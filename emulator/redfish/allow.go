package redfish

// allow is the Allow header of the address: that of the page that is there, or
// of what stands beside it.
func (x *exchange) allow(p *representation) []string {
	if x.match.action != nil || x.match.members {
		return x.match.allow
	}
	return p.allow
}

// allowed is the Allow header of what is there at a time.
func (x *exchange) allowed(at *snapshot) []string {
	if x.match.action != nil || x.match.members {
		return x.match.allow
	}
	return x.allow(x.s.renderer.representation(x.match, at))
}

// verbs are the HTTP methods that Redfish knows (DSP0266, "HTTP methods").
var verbs = []string{"GET", "HEAD", "OPTIONS", "POST", "PATCH", "PUT", "DELETE"}
