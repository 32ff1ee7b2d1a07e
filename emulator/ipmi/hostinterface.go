package ipmi

import (
	"crypto/rand"
	"crypto/sha256"
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
	{fn: wire.Group, cmd: 0x01, group: redfishGroup, name: "Get Manager Certificate Fingerprint", inBand: true, least: 1, most: 1, run: fingerprint},
	{fn: wire.Group, cmd: 0x02, group: redfishGroup, name: "Get Bootstrap Account Credentials", inBand: true, least: 1, most: 1, acts: true, run: bootstrap},
}

const notBootstrapping Code = 0x80

const (
	keepEnabled    = 0xa5
	credentialSize = 16
)

// fingerprint tells what certificate the web service shows, so that who asks can
// trust it (DSP0270, "Get Manager Certificate Fingerprint").
func fingerprint(x *exchange) error {
	const sha256ID = 1
	boots, certs := x.bmc().Boots(), x.bmc().Certificates
	switch {
	case boots.Disabled || boots.Closed:
		return notBootstrapping
	case x.data[0] != 1:
		return NotPresent // there is one
	}
	var own bmc.Own
	if certs.HTTPS != nil {
		own = *certs.HTTPS
	} else {
		var err error
		if own, err = x.host.Factory(); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(own.Chain[0])
	x.put(sha256ID)
	x.put(sum[:]...)
	return nil
}

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
