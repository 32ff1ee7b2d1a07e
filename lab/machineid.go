package lab

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// machineIDFile has the ID of an installed system (machine-id(5)).
const machineIDFile = "etc/machine-id"

// ownFiles returns the files of a system that no other has: of a server's system on a disk, the same
// at each boot, of a live system those of the boot. A first boot with a data source replaces them by
// those of the installation.
func ownFiles(h *rack.Host, os machine.OS) sandbox.Tree {
	boot := ""
	if os.Name != DiskOS {
		boot = bootOf(h, os.Boot).ID
	}
	return sandbox.Tree{machineIDFile: machineID(h, os, boot)}
}

// machineID returns a machine-id: a UUID of the server's UUID, the disk with the system, and what
// else makes it another one (RFC 9562, §5.5), as 32 digits and a newline.
func machineID(h *rack.Host, os machine.OS, more string) sandbox.Node {
	v := h.Machine()
	name := []string{v.Identity.UUID, diskName(v.Storage, os.Source.Device), more}
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join(name, " ")))
	return sandbox.File(0o444, hex.EncodeToString(id[:])+"\n")
}

// diskName returns the serial number of a drive, or the WWN of a volume; "" if there is no such
// device.
func diskName(v storage.View, device string) string {
	for _, d := range v.Devices() {
		switch {
		case d.ID != device:
		case d.Volume != nil:
			return d.Volume.WWN
		default:
			return d.Drive.Serial
		}
	}
	return ""
}
