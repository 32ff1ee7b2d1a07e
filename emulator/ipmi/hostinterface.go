package ipmi

import (
	"crypto/rand"
	"errors"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// redfishGroup is the body whose commands those of DSP0270 are (§5.1, table
// 5-1).
const redfishGroup = 0x52

// hostInterfaceCommands are those by which the server's own software finds its
// way into Redfish. Over LAN nobody gets credentials.
var hostInterfaceCommands = []command{
	{fn: wire.Group, cmd: 0x02, group: redfishGroup, name: "Get Bootstrap Account Credentials", inBand: true, least: 1, most: 1, acts: true, run: bootstrap},
}

const (
	notBootstrapping Code = 0x80
	keepEnabled           = 0xa5
	credentialSize        = 16
)

// bootstrap makes an account and tells its name and password (DSP0270, "Get
// Bootstrap Account Credentials"). Unless it is asked to go on, that is done
// once until the next reset.
func bootstrap(x *exchange) error {
	const prefix = "boot"
	name, password := prefix+rand.Text()[:credentialSize-len(prefix)], rand.Text()[:credentialSize]
	_, err := x.tell(bmc.MakeBootstrap{Name: name, Password: password, Last: x.data[0] != keepEnabled})
	switch {
	case errors.Is(err, bmc.ErrDisabled):
		return notBootstrapping
	case err != nil:
		return err
	}
	x.put([]byte(name + password)...)
	return nil
}
