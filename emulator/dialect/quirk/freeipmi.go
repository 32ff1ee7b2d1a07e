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
		ID: "ipmi-supermicro20", Does: "the code by which the BMC proves that it knows a password is a byte too long",
		Seen: "Supermicro H8QME with SIMSO", Source: freeIPMISource("supermicro20"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.LongAuthCode = true }),
	},
	{
		ID: "ipmi-intel20", Does: "logins are proved with the name filled up to 16 bytes, and the answer to them by another algorithm",
		Seen: "Intel SE7520AF2 with the Professional Edition of its management module", Source: freeIPMISource("intel20"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.PaddedKeys = true }),
	},
	{
		ID: "ipmi-sun20", Does: "logins are proved with a code that is a byte too long, and with the privilege that was asked for when the session was opened",
		Seen: "Sun Fire 4100, 4200 and 4500 with ILOM", Source: freeIPMISource("sun20"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.LongAuthCode, f.OpenSessPriv = true, true }),
	},
	{
		ID: "ipmi-idzero", Does: "IPMI 1.5 is taken, and its packets come with the session ID 0",
		Seen: "Tyan S2882 with M3289", Source: freeIPMISource("idzero"),
		change: ipmi15Fault(func(f *dialect.IPMIFaults) { f.ZeroSessionID = true }),
	},
	{
		ID: "ipmi-endianseq", Does: "IPMI 1.5 is taken, and the sequence numbers of its packets have their highest byte first",
		Seen: "Sun ILOM 1.0 and 2.0", Source: freeIPMISource("endianseq"),
		change: ipmi15Fault(func(f *dialect.IPMIFaults) { f.BigEndianSequence = true }),
	},
	{
		ID: "ipmi-slowcommit", Does: "of writes of configuration that come at once only the first ones are kept, and all are answered as if they were",
		Seen: "Supermicro H8QME with SIMSO, Quanta S99Q", Source: freeIPMISource("slowcommit"),
		Params: []Param{{"n", "2", Count, "writes that are kept"}, {"within", "500ms", Span, "of one another"}},
		change: func(r *dialect.Record, p values) {
			r.IPMI.Faults.KeptWrites, r.IPMI.Faults.WriteWindow = p.count("n"), p.span("within")
		},
	},
	{
		ID: "ipmi-discretereading", Does: "records of sensors that read a number say that they have states, and no thresholds",
		Seen: "HP ProLiant DL380 G7 and ML310 G5", Source: freeIPMISource("discretereading"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.DiscreteReadings = true }),
	},
	{
		ID: "ipmi-noauthcodecheck", Does: "IPMI 1.5 is taken, and the codes of its packets are wrong",
		Seen: "Xyratex HB-F8-SRAY, Intel Windmill, Quanta Winterfell, Wiwynn Windmill", Source: freeIPMISource("noauthcodecheck"),
		change: ipmi15Fault(func(f *dialect.IPMIFaults) { f.BadAuthCode = true }),
	},
	{
		ID: "ipmi-nochecksumcheck", Does: "the checksums of what is answered in a session are wrong",
		Seen: "Supermicro X9SCM-iiF, X9DRi-F and X9DRFR", Source: freeIPMISource("nochecksumcheck"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.BadChecksum = true }),
	},
	{
		ID: "ipmi-assumebmcowner", Does: "records of the BMC's sensors say that they are of another controller, which there is not",
		Seen: "Fujitsu RX300 and RX300S2", Source: freeIPMISource("assumebmcowner"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.ForeignOwner = true }),
	},
	{
		ID: "ipmi-ignorescanningdisabled", Does: "sensors that read a number say that they are not scanned",
		Seen: "Dell PowerEdge 2900, 2950, R410 and R610, HP Integrity rx3600", Source: freeIPMISource("ignorescanningdisabled"),
		change: ipmiFault(func(f *dialect.IPMIFaults) { f.ScanningDisabled = true }),
	},
}
