package quirk

import "github.com/metalab-dev/metalab/emulator/dialect"

// freeIPMISource names where FreeIPMI documents a workaround, and for which BMCs.
func freeIPMISource(name string) []string {
	return []string{"FreeIPMI, workaround " + name, "https://www.gnu.org/software/freeipmi/freeipmi-bugs-issues-and-workarounds.txt"}
}

// ipmiFault returns a change of IPMI.Faults.
func ipmiFault(change func(*dialect.IPMIFaults)) func(*dialect.Record, values) {
	return func(r *dialect.Record, _ values) { change(&r.IPMI.Faults) }
}

// ipmi15Fault is ipmiFault for faults that show in IPMI 1.5 alone, which the BMC
// then accepts.
func ipmi15Fault(change func(*dialect.IPMIFaults)) func(*dialect.Record, values) {
	return func(r *dialect.Record, _ values) {
		change(&r.IPMI.Faults)
		if len(r.BMC.Channel.AuthTypes) == 0 {
			const md5 = 1 << 2
			r.BMC.Channel.AuthTypes = []byte{md5, md5, md5, md5, md5}
		}
	}
}

// freeIPMI are the quirks for which FreeIPMI has workarounds.
var freeIPMI = []Quirk{
	{
		ID: "ipmi-supermicro20", Does: "the key exchange authentication code of RAKP 2 is one byte too long",
		Seen: "Supermicro H8QME with SIMSO", Source: freeIPMISource("supermicro20"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.LongAuthCode = true }),
	},
	{
		ID: "ipmi-intel20", Does: "RAKP authentication codes are computed with the user name padded to 16 bytes, and RAKP 4 uses the integrity algorithm of the suite",
		Seen: "Intel SE7520AF2 with the Professional Edition of its management module", Source: freeIPMISource("intel20"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.PaddedKeys = true }),
	},
	{
		ID: "ipmi-sun20", Does: "the key exchange authentication code of RAKP 2 is one byte too long, and RAKP codes use the privilege level of Open Session",
		Seen: "Sun Fire 4100, 4200 and 4500 with ILOM", Source: freeIPMISource("sun20"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.LongAuthCode, f.OpenSessPriv = true, true }),
	},
	{
		ID: "ipmi-idzero", Does: "the BMC accepts IPMI 1.5, and the packets of its sessions have the session ID 0",
		Seen: "Tyan S2882 with M3289", Source: freeIPMISource("idzero"),
		change: ipmi15Fault(func(f *dialect.IPMIFaults) { f.ZeroSessionID = true }),
	},
	{
		ID: "ipmi-endianseq", Does: "the BMC accepts IPMI 1.5, and the session sequence numbers of its packets have the most significant byte first",
		Seen: "Sun ILOM 1.0 and 2.0", Source: freeIPMISource("endianseq"),
		change: ipmi15Fault(func(f *dialect.IPMIFaults) { f.BigEndianSequence = true }),
	},
	{
		ID: "ipmi-slowcommit", Does: "of configuration writes in quick succession only the first take effect; the BMC confirms all of them",
		Seen: "Supermicro H8QME with SIMSO, Quanta S99Q", Source: freeIPMISource("slowcommit"),
		Params: []Param{{"n", "2", Count, "how many writes take effect"}, {"within", "500ms", Span, "time within which the logins fail"}},
		change: func(r *dialect.Record, p values) {
			r.IPMI.Faults.WritesPerWindow, r.IPMI.Faults.WriteWindow = p.count("n"), p.span("within")
		},
	},
	{
		ID: "ipmi-discretereading", Does: "the SDRs of threshold sensors describe discrete sensors",
		Seen: "HP ProLiant DL380 G7 and ML310 G5", Source: freeIPMISource("discretereading"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.DiscreteReadings = true }),
	},
	{
		ID: "ipmi-noauthcodecheck", Does: "the BMC accepts IPMI 1.5, and the authentication codes of its packets are wrong",
		Seen: "Xyratex HB-F8-SRAY, Intel Windmill, Quanta Winterfell, Wiwynn Windmill", Source: freeIPMISource("noauthcodecheck"),
		change: ipmi15Fault(func(f *dialect.IPMIFaults) { f.BadAuthCode = true }),
	},
	{
		ID: "ipmi-nochecksumcheck", Does: "the second checksum of responses within a session is wrong",
		Seen: "Supermicro X9SCM-iiF, X9DRi-F and X9DRFR", Source: freeIPMISource("nochecksumcheck"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.BadChecksum = true }),
	},
	{
		ID: "ipmi-assumebmcowner", Does: "the SDRs of the BMC's sensors name another management controller, which does not exist, as owner",
		Seen: "Fujitsu RX300 and RX300S2", Source: freeIPMISource("assumebmcowner"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.ForeignOwner = true }),
	},
	{
		ID: "ipmi-ignorescanningdisabled", Does: "Get Sensor Reading reports that scanning of threshold sensors is disabled, although readings change",
		Seen: "Dell PowerEdge 2900, 2950, R410 and R610, HP Integrity rx3600", Source: freeIPMISource("ignorescanningdisabled"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.ScanningDisabled = true }),
	},
}
