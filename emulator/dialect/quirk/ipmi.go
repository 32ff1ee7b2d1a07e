package quirk

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// ipmis are quirks of IPMI.
var ipmis = []Quirk{
	{
		ID: "ipmi-cipher-list-silent", Does: "Get Channel Cipher Suites is not answered",
		Seen: "several", Source: []string{"https://github.com/ipmitool/ipmitool/issues/199"},
		change: func(r *dialect.Record, _ values) { r.IPMI.NoSuiteList = true },
	},
	{
		ID: "ipmi-cipher-list-lies", Does: "Get Channel Cipher Suites lists a suite, 17, that the BMC does not accept",
		Seen: "several", Source: []string{"https://github.com/ipmitool/ipmitool/issues/363"},
		change: func(r *dialect.Record, _ values) {
			r.IPMI.AdvertisedSuites = []byte{17, 3}
			r.IPMI.CipherSuites = slices.DeleteFunc(slices.Clone(r.IPMI.CipherSuites), func(id byte) bool { return id == 17 })
			if len(r.IPMI.CipherSuites) == 0 {
				r.IPMI.CipherSuites = []byte{3}
			}
		},
	},
	{
		ID: "ipmi-off-when-off-errors", Does: "Chassis Control power down is an error while the system is off",
		Seen: "several", Source: []string{"https://bugs.launchpad.net/ironic/+bug/1718794"},
		change: func(r *dialect.Record, _ values) { r.IPMI.RejectOffWhileOff = true },
	},
	{
		ID: "ipmi-no-bootparam3", Does: "the BMC does not implement boot option parameter 3, boot flag valid bit clearing, with which clients set how long a boot request holds",
		Seen: "OpenBMC", Source: []string{"https://storyboard.openstack.org/#!/story/2004266"},
		change: func(r *dialect.Record, _ values) {
			r.IPMI.MissingBootOptions = append(slices.Clone(r.IPMI.MissingBootOptions), 3)
		},
	},
	{
		ID: "ipmi-authcap", Does: "Get Channel Authentication Capabilities reports no users with names",
		Seen: "several", Source: []string{"FreeIPMI, workaround authcap"},
		change: func(r *dialect.Record, _ values) { r.IPMI.Faults.AuthCap = true },
	},
	{
		ID: "ipmi-opensesspriv", Does: "the RAKP authentication codes use the privilege level of Open Session instead of that of RAKP 1",
		Seen: "several", Source: []string{"FreeIPMI, workaround opensesspriv"},
		change: func(r *dialect.Record, _ values) { r.IPMI.Faults.OpenSessPriv = true },
	},
	{
		ID: "ipmi-integritycheckvalue", Does: "cipher suite 0 is accepted, and its RAKP 4 has an integrity check value, which that suite does not have",
		Seen: "several", Source: []string{"FreeIPMI, workaround integritycheckvalue"},
		change: func(r *dialect.Record, _ values) {
			r.IPMI.Faults.IntegrityCheck = true
			if !slices.Contains(r.IPMI.CipherSuites, 0) {
				r.IPMI.CipherSuites = append(slices.Clone(r.IPMI.CipherSuites), 0)
			}
		},
	},
	{
		ID: "ipmi-solpayloadsize", Does: "Activate Payload reports serial-over-LAN payload sizes of 0",
		Seen: "ASUS P5M2, Intel X38ML, Sun Fire 4100", Source: []string{"FreeIPMI, workaround solpayloadsize"},
		change: func(r *dialect.Record, _ values) { r.IPMI.Faults.SOLPayloadSizes = true },
	},
	{
		ID: "ipmi-smc-uefi-0x24", Does: "with UEFI boot flags, device selector 9 (boot flags byte 0x24) boots from disk; the standard's selector 2 is accepted and has no effect",
		Seen: "Supermicro", Source: []string{"https://storyboard.openstack.org/#!/story/2008241"},
		change: func(r *dialect.Record, _ values) {
			r.IPMI.EFIBootDevices = map[byte]machine.SourceKind{2: machine.None, 9: machine.Hdd}
		},
	},
}
