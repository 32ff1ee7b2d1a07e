package rack

import (
	"iter"
	"net/netip"

	"github.com/metalab-dev/metalab/emulator/rack/ssdp"
)

// discoverableServices yields the BMCs that a search at an address finds, or all of
// them for the zero address. BMCs that are off the network or have SSDP switched off
// are left out.
func (l *Rack) discoverableServices(at netip.Addr) iter.Seq[ssdp.Service] {
	return func(yield func(ssdp.Service) bool) {
		for _, h := range l.hosts {
			addr := h.Address().Addr()
			if at.IsValid() && at != addr || h.Reach() != Reachable || !h.BMC().Network().SSDP.On {
				continue
			}
			if !yield(ssdp.Service{UUID: h.Machine().Identity.BMCUUID(), URL: h.URL() + "/redfish/v1/", At: addr}) {
				return
			}
		}
	}
}
