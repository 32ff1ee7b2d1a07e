package command

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// redfishGroup is the defining body of DSP0270's commands (§5.1, table 5-1).
const redfishGroup = 0x52

// hostInterfaceCommands are the Redfish Host Interface commands, by which the
// server's own software reaches the Redfish service. Credentials are never
// given out over LAN.
var hostInterfaceCommands = []Row{
	{fn: wire.Group, cmd: 0x01, group: redfishGroup, name: "Get Manager Certificate Fingerprint", inBand: true, least: 1, most: 1, run: getManagerCertificateFingerprint},
	{fn: wire.Group, cmd: 0x02, group: redfishGroup, name: "Get Bootstrap Account Credentials", inBand: true, least: 1, most: 1, mutates: true, run: getBootstrapCredentials},
}

const bootstrappingDisabled Code = 0x80

const (
	keepBootstrappingEnabled = 0xa5
	credentialSize           = 16
)

// getManagerCertificateFingerprint answers the fingerprint of the web server's
// certificate, so that the caller can trust it (DSP0270, "Get Manager
// Certificate Fingerprint").
func getManagerCertificateFingerprint(x *Request) error {
	const sha256ID = 1
	boots, certs := x.bmc().HostBootstrap(), x.bmc().Certificates
	switch {
	case boots.Disabled || boots.Closed:
		return bootstrappingDisabled
	case x.data[0] != 1:
		return NotPresent // there is only certificate 1
	}
	var current bmc.KeyedCertificate
	if certs.HTTPS != nil {
		current = *certs.HTTPS
	} else {
		var err error
		if current, err = x.Host.FactoryCertificate(); err != nil {
			return err
		}
	}
	sum := sha256.Sum256(current.Chain[0])
	x.put(sha256ID)
	x.put(sum[:]...)
	return nil
}

// getBootstrapCredentials creates an account and answers its name and password
// (DSP0270, "Get Bootstrap Account Credentials"). Unless the caller asks to
// keep bootstrapping enabled, it works once until the next reset.
func getBootstrapCredentials(x *Request) error {
	const prefix = "boot"
	name, password := prefix+rand.Text()[:credentialSize-len(prefix)], rand.Text()[:credentialSize]
	_, err := x.applyBMC(bmc.CreateBootstrapAccount{Name: name, Password: password, Last: x.data[0] != keepBootstrappingEnabled})
	switch {
	case errors.Is(err, bmc.ErrDisabled):
		return bootstrappingDisabled
	case err != nil:
		return err
	}
	x.put([]byte(name + password)...)
	return nil
}
