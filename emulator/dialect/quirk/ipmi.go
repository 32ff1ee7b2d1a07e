package quirk

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// ipmis are quirks of IPMI.
var ipmis = []Quirk{
	{
		ID: "ipmi-cipher-list-silent", Does: "who asks which cipher suites there are has no answer",
		Seen: "several", Source: []string{"https://github.com/ipmitool/ipmitool/issues/199"},
		change: func(r *dialect.Record, _ values) { r.IPMI.NoSuiteList = true },
	},
	{
		ID: "ipmi-cipher-list-lies", Does: "cipher suites are listed that are not taken",
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
		ID: "ipmi-off-when-off-errors", Does: "to power off what is off is an error",
		Seen: "several", Source: []string{"https://bugs.launchpad.net/ironic/+bug/1718794"},
		change: func(r *dialect.Record, _ values) { r.IPMI.RejectOffWhileOff = true },
	},
	{
		ID: "ipmi-no-bootparam3", Does: "there is no boot option 3, by which clients say how long a request holds",
		Seen: "OpenBMC", Source: []string{"https://storyboard.openstack.org/#!/story/2004266"},
		change: func(r *dialect.Record, _ values) {
			r.IPMI.MissingBootOptions = append(slices.Clone(r.IPMI.MissingBootOptions), 3)
		},
	},
	{
		ID: "ipmi-authcap", Does: "the BMC tells of no users with names",
		Seen: "several", Source: []string{"FreeIPMI, workaround authcap"},
		change: func(r *dialect.Record, _ values) { r.IPMI.Faults.AuthCap = true },
	},
	{
		ID: "ipmi-opensesspriv", Does: "a login is proved with the privilege that was asked for when the session was opened",
		Seen: "several", Source: []string{"FreeIPMI, workaround opensesspriv"},
		change: func(r *dialect.Record, _ values) { r.IPMI.Faults.OpenSessPriv = true },
	},
	{
		ID: "ipmi-integritycheckvalue", Does: "cipher suite 0 is taken, and its logins end with an integrity check value that there is none of",
		Seen: "several", Source: []string{"FreeIPMI, workaround integritycheckvalue"},
		change: func(r *dialect.Record, _ values) {
			r.IPMI.Faults.IntegrityCheck = true
			if !slices.Contains(r.IPMI.CipherSuites, 0) {
				r.IPMI.CipherSuites = append(slices.Clone(r.IPMI.CipherSuites), 0)
			}
		},
	},
	{
		ID: "ipmi-solpayloadsize", Does: "whoever opens the console is told that a message holds nothing",
		Seen: "ASUS P5M2, Intel X38ML, Sun Fire 4100", Source: []string{"FreeIPMI, workaround solpayloadsize"},
		change: func(r *dialect.Record, _ values) { r.IPMI.Faults.SOLPayloadSizes = true },
	},
	{
		ID: "ipmi-smc-uefi-0x24", Does: "in UEFI mode a disk is boot device 9 (0x24): the standard's is taken and does nothing",
		Seen: "Supermicro", Source: []string{"https://storyboard.openstack.org/#!/story/2008241"},
		change: func(r *dialect.Record, _ values) {
			r.IPMI.EFIBootDevices = map[byte]machine.SourceKind{2: machine.None, 9: machine.Hdd}
		},
	},
}
