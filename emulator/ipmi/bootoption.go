package ipmi

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

const (
	parameterLocked  = 1 << 7
	parameterVersion = 0x01
)

// bootParameter is a boot option (table 28-14).
type bootParameter struct {
	least, most int // bytes that it is set with
	set         func(x *request, c *machine.SetSystemBootOptions, d []byte) error
	get         func(v *machine.View, d *dialect.IPMI) []byte
}

// mailboxParameter is the only one that has blocks.
const mailboxParameter = 7

var bootParameters = []bootParameter{
	0: {1, 1, setBootProgress, func(v *machine.View, _ *dialect.IPMI) []byte { return []byte{bit(v.SystemBootOptions.InProgress, 0)} }},
	1: {1, 1, setBootPartition, func(v *machine.View, _ *dialect.IPMI) []byte { return []byte{v.SystemBootOptions.PartitionSelector} }},
	2: {1, 1, setBootPartitionScan, func(v *machine.View, _ *dialect.IPMI) []byte {
		return []byte{bit(v.SystemBootOptions.PartitionScan, 1)}
	}},
	3: {1, 1, setBootFlagValidClearing, func(v *machine.View, _ *dialect.IPMI) []byte {
		return []byte{bootFlagValidClearing(v.SystemBootOptions)}
	}},
	4: {2, 2, setBootInfoAcknowledge, func(v *machine.View, _ *dialect.IPMI) []byte { return []byte{0, v.SystemBootOptions.InfoAcknowledge} }},
	5: {5, 5, setBootFlags, bootFlags},
	6: {9, 9, setBootInitiator, func(v *machine.View, _ *dialect.IPMI) []byte { return zeroPadded(v.SystemBootOptions.Initiator, 9) }},
	7: {1, 1 + mailboxBlock, setBootMailbox, nil},
}

func hasBootParameter(x *request, n int) bool {
	return n < len(bootParameters) && !slices.Contains(x.host.Dialect().IPMI.MissingBootOptions, byte(n))
}

// zeroPadded is a copy of b with zeros up to n bytes.
func zeroPadded(b []byte, n int) []byte { return append(slices.Clone(b), make([]byte, n-len(b))...) }

// setBootOption is §28.12. What is written takes effect at once.
func setBootOption(x *request) error {
	n, d := int(x.data[0]&^parameterLocked), x.data[1:]
	if !hasBootParameter(x, n) {
		return noParameter
	}
	c := machine.SetSystemBootOptions{SystemBootOptions: *x.machine().SystemBootOptions}
	c.ParameterLocks &^= 1 << n
	if x.data[0]&parameterLocked != 0 {
		c.ParameterLocks |= 1 << n
	}
	if p := bootParameters[n]; len(d) > 0 { // without data only the mark is set
		if len(d) < p.least || len(d) > p.most {
			return DataLengthInvalid
		}
		if err := p.set(x, &c, d); err != nil {
			return err
		}
	}
	return x.applyMachine(c)
}

// bootOption is §28.13.
func bootOption(x *request) error {
	n, set, block := int(x.data[0]), int(x.data[1]), x.data[2]
	switch {
	case n&parameterLocked != 0 || block != 0:
		return InvalidDataField
	case !hasBootParameter(x, n):
		return noParameter
	case n == mailboxParameter && set >= mailboxBlocks:
		return ParameterOutOfRange
	case n != mailboxParameter && set != 0:
		return InvalidDataField
	}
	v := x.machine()
	x.put(parameterVersion, v.SystemBootOptions.ParameterLocks>>n<<7|byte(n))
	if n == mailboxParameter {
		x.put(byte(set))
		x.put(mailbox(v.SystemBootOptions, set)...)
		return nil
	}
	x.put(bootParameters[n].get(v, &x.host.Dialect().IPMI)...)
	return nil
}

// setBootProgress notes that somebody is at the parameters. There is nothing to
// roll back to: to commit is to go on.
func setBootProgress(_ *request, c *machine.SetSystemBootOptions, d []byte) error {
	const complete, begin, commit = 0, 1, 2
	switch d[0] {
	case complete:
		c.InProgress = false
	case begin:
		if c.InProgress {
			return setAlreadyInProgress
		}
		c.InProgress = true
	case commit:
	default:
		return InvalidDataField
	}
	return nil
}

func setBootPartition(_ *request, c *machine.SetSystemBootOptions, d []byte) error {
	c.PartitionSelector = d[0]
	return nil
}

// setBootPartitionScan asks the firmware to look for the service partition. That there is
// one only the firmware says.
func setBootPartitionScan(_ *request, c *machine.SetSystemBootOptions, d []byte) error {
	const discovered, scan = 1 << 0, 1 << 1
	switch {
	case d[0]&^(discovered|scan) != 0:
		return InvalidDataField
	case d[0]&discovered != 0:
		return readOnly
	}
	c.PartitionScan = d[0]&scan != 0
	return nil
}

// Bits of parameter 3.
const (
	keepOnPEFReset = 1 << 4
	keepOnTimeout  = 1 << 3
)

// keepOnCause are the bits of parameter 3 that are about starts for a cause.
var keepOnCause = []struct {
	bit    byte
	causes []machine.ResetCause
}{
	{1 << 0, []machine.ResetCause{machine.CauseButton}},
	{1 << 1, []machine.ResetCause{machine.CauseSystem, machine.CauseCrash}},
	{1 << 2, []machine.ResetCause{machine.CauseWatchdog}},
}

// setBootFlagValidClearing says what does not end a request.
func setBootFlagValidClearing(_ *request, c *machine.SetSystemBootOptions, d []byte) error {
	if d[0] > 0x1f {
		return InvalidDataField
	}
	c.NoTimeout, c.KeepOnCauses, c.KeepOnPEFReset = d[0]&keepOnTimeout != 0, nil, d[0]&keepOnPEFReset != 0
	for _, k := range keepOnCause {
		if d[0]&k.bit != 0 {
			c.KeepOnCauses = append(c.KeepOnCauses, k.causes...)
		}
	}
	return nil
}

func bootFlagValidClearing(b *machine.SystemBootOptions) (out byte) {
	for _, k := range keepOnCause {
		if slices.Contains(b.KeepOnCauses, k.causes[0]) {
			out |= k.bit
		}
	}
	return out | bit(b.NoTimeout, 3) | bit(b.KeepOnPEFReset, 4)
}

// setBootInfoAcknowledge writes those bits that the first byte enables.
func setBootInfoAcknowledge(_ *request, c *machine.SetSystemBootOptions, d []byte) error {
	c.InfoAcknowledge = c.InfoAcknowledge&^d[0] | d[1]&d[0]
	return nil
}

// setBootInitiator notes who boots.
func setBootInitiator(_ *request, c *machine.SetSystemBootOptions, d []byte) error {
	if d[0] > 0x0f { // channel
		return InvalidDataField
	}
	c.Initiator = slices.Clone(d)
	return nil
}

// The mailbox has to have five blocks at least.
const mailboxBlock, mailboxBlocks = 16, 16

// setBootMailbox writes the beginning of a block; the rest stays.
func setBootMailbox(_ *request, c *machine.SetSystemBootOptions, d []byte) error {
	if d[0] >= mailboxBlocks {
		return ParameterOutOfRange
	}
	from := int(d[0]) * mailboxBlock
	c.Mailbox = zeroPadded(c.Mailbox, max(len(c.Mailbox), from+len(d)-1))
	copy(c.Mailbox[from:], d[1:])
	return nil
}

// mailbox is a block, whole.
func mailbox(b *machine.SystemBootOptions, n int) []byte {
	from := min(n*mailboxBlock, len(b.Mailbox))
	return zeroPadded(b.Mailbox[from:min(from+mailboxBlock, len(b.Mailbox))], mailboxBlock)
}

// Parts of the boot flags, which are parameter 5, by their bytes.
const (
	flagsValid      = 1 << 7
	flagsPersistent = 1 << 6
	flagsEFI        = 1 << 5

	flagsDefaults  = 1 << 7 // "CMOS clear"
	flagsDevice    = 0x3c
	flagsLockReset = 1 << 0

	flagsLockPower = 1 << 7

	flagsInternal = 1 << 4
	flagsInstance = 0x1f
)

// bootDevices are what the boot device selectors stand for; "" is reserved.
// What is redirected, and removable media, come over USB here.
var bootDevices = []machine.SourceKind{
	0x0: machine.None, 0x1: machine.Pxe, 0x2: machine.Hdd, 0x3: machine.Hdd, 0x4: machine.Diags, 0x5: machine.Cd, 0x6: machine.BiosSetup,
	0x7: machine.Usb, 0x8: machine.Cd, 0x9: machine.Usb, 0xb: machine.Usb, 0xf: machine.Usb,
}

// bootSelectors are the selectors that targets are told by which Redfish has
// set. Those that no selector stands for are told as no override.
var bootSelectors = map[machine.SourceKind]byte{
	machine.Pxe: 0x1, machine.Hdd: 0x2, machine.Diags: 0x4, machine.Cd: 0x5, machine.BiosSetup: 0x6, machine.Usb: 0xf, machine.Floppy: 0xf,
}

func bootDevice(flags byte) machine.SourceKind { return bootDevices[flags&flagsDevice>>2] }

// bootTarget is what a selector stands for to a vendor's BMC in a boot mode.
func bootTarget(flags byte, mode machine.Mode, d *dialect.IPMI) machine.SourceKind {
	if to, ok := d.EFIBootDevices[flags&flagsDevice>>2]; ok && mode == machine.UEFI {
		return to
	}
	return bootDevice(flags)
}

// invalidBootFlags says whether reserved bits are set, or values that are reserved.
func invalidBootFlags(d []byte) bool {
	const verbosity, redirection, mux = 0x60, 0x03, 0x07
	return d[0]&0x1f != 0 || bootDevice(d[1]) == "" ||
		d[2]&verbosity == verbosity || d[2]&redirection == redirection ||
		d[3]&0xf0 != 0 || d[3]&mux > 2 ||
		d[4]&^flagsInstance != 0 || d[4] == flagsInternal
}

// bootSelector is the selector that a target is told by.
func bootSelector(target machine.SourceKind, mode machine.Mode, d *dialect.IPMI) byte {
	for s := range byte(len(bootDevices)) { // in order
		if is, ok := d.EFIBootDevices[s]; ok && is == target && mode == machine.UEFI {
			return s
		}
	}
	return bootSelectors[target]
}

// setBootFlags makes them the override that Redfish shows. What Redfish has no
// word for is kept beside.
func setBootFlags(x *request, c *machine.SetSystemBootOptions, d []byte) error {
	if invalidBootFlags(d) {
		return InvalidDataField
	}
	o := x.machine().Override
	o.Enabled, o.Target, o.BootNext = machine.Disabled, machine.None, ""
	if d[0]&flagsValid != 0 {
		o.Enabled, o.Mode = machine.Once, machine.Legacy
		if d[0]&flagsEFI != 0 {
			o.Mode = machine.UEFI
		}
		o.Target = bootTarget(d[1], o.Mode, &x.host.Dialect().IPMI)
		if d[0]&flagsPersistent != 0 {
			if x.session != nil && x.session.Privilege < wire.Administrator {
				return InsufficientPrivilege
			}
			o.Enabled = machine.Continuous
		}
	}
	c.Request = &o
	c.Flags = []byte{d[0] & flagsEFI, d[1] &^ flagsDefaults, d[2], d[3]}
	c.LoadDefaults = d[1]&flagsDefaults != 0
	c.LockButtons = machine.Buttons{PowerOff: d[2]&flagsLockPower != 0, Reset: d[1]&flagsLockReset != 0}
	c.DeviceInstance = int(d[4] &^ flagsInternal)
	if d[4]&flagsInternal != 0 {
		c.DeviceInstance += machine.MaxInstance
	}
	return nil
}

// bootFlags are the flags of the override as it is, however it was set.
func bootFlags(v *machine.View, d *dialect.IPMI) []byte {
	f, o, b := make([]byte, 5), v.Override, v.SystemBootOptions
	copy(f, b.Flags)
	if o.Enabled != machine.Disabled {
		f[0] = flagsValid | bit(o.Enabled == machine.Continuous, 6) | bit(o.Mode == machine.UEFI, 5)
		if bootTarget(f[1], o.Mode, d) != o.Target {
			f[1] = f[1]&^flagsDevice | bootSelector(o.Target, o.Mode, d)<<2
		}
	}
	f[1] |= bit(b.LoadDefaults, 7)
	f[4] = byte(b.DeviceInstance)
	if b.DeviceInstance > machine.MaxInstance {
		f[4] = flagsInternal | byte(b.DeviceInstance-machine.MaxInstance)
	}
	return f
}
