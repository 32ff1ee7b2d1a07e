package lab

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// The lab does not read the files of a user's image, which may have any file system. A server
// with one gets the files of the lab's image, with the os-release that the rack file names,
// and the console says so.

const osReleaseFile = "etc/os-release"

// userBases returns the base of each host whose group has an os-release. Hosts with equal
// texts share it.
func userBases(hosts []rackfile.Host) map[int]sandbox.Tree {
	out, byText := map[int]sandbox.Tree{}, map[string]sandbox.Tree{}
	for _, h := range hosts {
		if h.OSRelease == "" {
			continue
		}
		if byText[h.OSRelease] == nil {
			t := maps.Clone(systemBase())
			t[osReleaseFile] = sandbox.File(0o644, h.OSRelease)
			if !debianLike.MatchString(h.OSRelease) {
				delete(t, "etc/debian_version")
			}
			byText[h.OSRelease] = t
		}
		out[h.Index] = byText[h.OSRelease]
	}
	return out
}

// debianLike matches an os-release of Debian and its derivatives (os-release(5), ID_LIKE).
var debianLike = regexp.MustCompile(`(?m)^ID(_LIKE)?=".*\b(debian|ubuntu)\b`)

// baseOf returns the base of the system that a host boots, and a line for the console if
// the image is the user's.
func (y *systems) baseOf(h *rack.Host, os machine.OS) (base sandbox.Tree, note string) {
	base = systemBase()
	ours, err := bootedOurs(h, os)
	switch {
	case errors.Is(err, rack.ErrDown):
		return base, ""
	case err != nil:
		y.log.Warn("the image that a server has booted cannot be read", "machine", h.Name(), "error", err)
		return base, ""
	case ours:
		return base, ""
	}
	if b := y.bases[h.Index()]; b != nil {
		base = b
	}
	return base, fmt.Sprintf("The files of this image are not read: the lab's files stand for them, with the os-release of %s.", prettyName(string(base[osReleaseFile].Content)))
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

// prettyName returns how a text of os-release calls the system (os-release(5)).
func prettyName(text string) string {
	fields := map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		k, v, _ := strings.Cut(s.Text(), "=")
		fields[k] = strings.Trim(v, `"`)
	}
	if n := fields["PRETTY_NAME"]; n != "" {
		return n
	}
	return strings.TrimSpace(fields["ID"] + " " + fields["VERSION_ID"])
}
