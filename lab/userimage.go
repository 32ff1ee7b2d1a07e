package lab

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// The lab does not read the files of a user's image, which may have any file system. A server
// with one gets the files of a server with the os-release that the rack file names, and the console
// says so.

// baseOf returns the base of the system that a host boots, and a line for the console if
// the image is the user's.
func (y *systems) baseOf(h *rack.Host, os machine.OS) (b *base, note string) {
	b = baseFor(debian.Bookworm)
	ours, err := bootedOurs(h, os)
	switch {
	case errors.Is(err, rack.ErrDown):
		return b, ""
	case err != nil:
		y.log.Warn("the image that a server has booted cannot be read", "machine", h.Name(), "error", err)
		return b, ""
	case ours:
		return b, ""
	}
	text := y.osReleases[h.Index()]
	if text != "" {
		b = baseFor(text)
	}
	return b, fmt.Sprintf("The files of this image are not read: the lab's files stand for them, with the os-release of %s.", debian.PrettyName(debian.Fields(cmp.Or(text, debian.Bookworm))))
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
