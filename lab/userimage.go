package lab

import (
	"cmp"
	"errors"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// A user's image may have any file system. Where the lab cannot read its root, a server with one gets
// the files of a server with the os-release that the rack file names, and the console says so.

// baseOf returns the base of the system that a host boots, and whether the image is the user's.
func (y *systems) baseOf(h *rack.Host, os machine.OS) (b *base, ofUser bool) {
	b = baseFor(cmp.Or(y.osReleases[h.Index()], debian.Bookworm))
	ours, err := bootedOurs(h, os)
	switch {
	case errors.Is(err, rack.ErrDown):
		return b, false
	case err != nil:
		y.log.Warn("the image that a server has booted cannot be read", "machine", h.Name(), "error", err)
		return b, false
	}
	return b, !ours
}

// bootedOurs reports whether a host has booted the lab's image.
func bootedOurs(h *rack.Host, os machine.OS) (bool, error) {
	if os.Name != DiskOS {
		return false, nil
	}
	d, err := h.Attach(os.Boot, os.Source.Device)
	if err != nil {
		return false, err
	}
	return images.IsBuilt(d)
}

// osReleases returns the os-release of each host whose group has one.
func osReleases(hosts []rackfile.Host) map[int]string {
	out := map[int]string{}
	for _, h := range hosts {
		if h.OSRelease != "" {
			out[h.Index] = h.OSRelease
		}
	}
	return out
}
