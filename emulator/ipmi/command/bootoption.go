package command

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

// bootParameter is a boot option parameter (table 28-14).
type bootParameter struct {
	least, most int // accepted data length, in bytes
	set         func(x *Request, c *machine.SetSystemBootOptions, d []byte) error
	get         func(v *machine.View, d *dialect.IPMI) []byte
}

// mailboxParameter is the boot initiator mailbox, the only parameter with a
// block selector.
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

func hasBootParameter(x *Request, n int) bool {
	return n < len(bootParameters) && !slices.Contains(x.Host.Dialect().IPMI.MissingBootOptions, byte(n))
}

// zeroPadded returns a copy of b, padded with zeros to n bytes.
func zeroPadded(b []byte, n int) []byte { return append(slices.Clone(b), make([]byte, n-len(b))...) }

// setBootOption handles Set System Boot Options (§28.12). Parameters take
// effect at once.
func setBootOption(x *Request) error {
	n, d := int(x.data[0]&^parameterLocked), x.data[1:]
	if !hasBootParameter(x, n) {
		return noParameter
	}
	c := machine.SetSystemBootOptions{SystemBootOptions: *x.machine().SystemBootOptions}
	c.ParameterLocks &^= 1 << n
	if x.data[0]&parameterLocked != 0 {
		c.ParameterLocks |= 1 << n
	}
	if p := bootParameters[n]; len(d) > 0 { // without data only the valid mark is set
		if len(d) < p.least || len(d) > p.most {
			return DataLengthInvalid
		}
		if err := p.set(x, &c, d); err != nil {
			return err
		}
	}
	return x.applyMachine(c)
}

// bootOption handles Get System Boot Options (§28.13).
func bootOption(x *Request) error {
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
	x.put(bootParameters[n].get(v, &x.Host.Dialect().IPMI)...)
	return nil
}

// setBootProgress sets parameter 0, set in progress. There is no rollback:
// "commit" only ends the set.
func setBootProgress(_ *Request, c *machine.SetSystemBootOptions, d []byte) error {
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

func setBootPartition(_ *Request, c *machine.SetSystemBootOptions, d []byte) error {
	c.PartitionSelector = d[0]
	return nil
}

// setBootPartitionScan sets parameter 2. Only the firmware reports whether a
// service partition was found.
func setBootPartitionScan(_ *Request, c *machine.SetSystemBootOptions, d []byte) error {
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

// Bits of parameter 3, BMC boot flag valid bit clearing.
const (
	keepOnPEFReset = 1 << 4
	keepOnTimeout  = 1 << 3
)

// keepOnCause maps bits of parameter 3 to the restart causes on which the boot
// flags stay valid.
var keepOnCause = []struct {
	bit    byte
	causes []machine.ResetCause
}{
	{1 << 0, []machine.ResetCause{machine.CauseButton}},
	{1 << 1, []machine.ResetCause{machine.CauseSystem, machine.CauseCrash}},
	{1 << 2, []machine.ResetCause{machine.CauseWatchdog}},
}

// setBootFlagValidClearing sets parameter 3, which events do not clear the boot
// flags.
func setBootFlagValidClearing(_ *Request, c *machine.SetSystemBootOptions, d []byte) error {
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

// setBootInfoAcknowledge writes those bits of parameter 4 that the first byte
// enables.
func setBootInfoAcknowledge(_ *Request, c *machine.SetSystemBootOptions, d []byte) error {
	c.InfoAcknowledge = c.InfoAcknowledge&^d[0] | d[1]&d[0]
	return nil
}

// setBootInitiator sets parameter 6, boot initiator info.
func setBootInitiator(_ *Request, c *machine.SetSystemBootOptions, d []byte) error {
	if d[0] > 0x0f { // channel
		return InvalidDataField
	}
	c.Initiator = slices.Clone(d)
	return nil
}

// §28.13 requires at least five mailbox blocks.
const mailboxBlock, mailboxBlocks = 16, 16

// setBootMailbox writes the beginning of a mailbox block; the rest of the block
// does not change.
func setBootMailbox(_ *Request, c *machine.SetSystemBootOptions, d []byte) error {
	if d[0] >= mailboxBlocks {
		return ParameterOutOfRange
	}
	from := int(d[0]) * mailboxBlock
	c.Mailbox = zeroPadded(c.Mailbox, max(len(c.Mailbox), from+len(d)-1))
	copy(c.Mailbox[from:], d[1:])
	return nil
}

// mailbox returns one full mailbox block.
func mailbox(b *machine.SystemBootOptions, n int) []byte {
	from := min(n*mailboxBlock, len(b.Mailbox))
	return zeroPadded(b.Mailbox[from:min(from+mailboxBlock, len(b.Mailbox))], mailboxBlock)
}

// Bits of the boot flags, parameter 5, by byte.
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

// bootDevices maps the boot device selectors to boot targets; "" is reserved.
// Remotely connected and removable media are USB devices here.
var bootDevices = []machine.SourceKind{
	0x0: machine.None, 0x1: machine.Pxe, 0x2: machine.Hdd, 0x3: machine.Hdd, 0x4: machine.Diags, 0x5: machine.Cd, 0x6: machine.BiosSetup,
	0x7: machine.Usb, 0x8: machine.Cd, 0x9: machine.Usb, 0xb: machine.Usb, 0xf: machine.Usb,
}

// bootSelectors maps boot targets that Redfish can set to the selector that
// reports them. A target without a selector reads as no override.
var bootSelectors = map[machine.SourceKind]byte{
	machine.Pxe: 0x1, machine.Hdd: 0x2, machine.Diags: 0x4, machine.Cd: 0x5, machine.BiosSetup: 0x6, machine.Usb: 0xf, machine.Floppy: 0xf,
}

func bootDevice(flags byte) machine.SourceKind { return bootDevices[flags&flagsDevice>>2] }

// bootTarget returns the boot target of a selector, as a vendor's BMC reads it
// in a boot mode.
func bootTarget(flags byte, mode machine.Mode, d *dialect.IPMI) machine.SourceKind {
	if to, ok := d.EFIBootDevices[flags&flagsDevice>>2]; ok && mode == machine.UEFI {
		return to
	}
	return bootDevice(flags)
}

// invalidBootFlags reports whether boot flags have reserved bits or values.
func invalidBootFlags(d []byte) bool {
	const verbosity, redirection, mux = 0x60, 0x03, 0x07
	return d[0]&0x1f != 0 || bootDevice(d[1]) == "" ||
		d[2]&verbosity == verbosity || d[2]&redirection == redirection ||
		d[3]&0xf0 != 0 || d[3]&mux > 2 ||
		d[4]&^flagsInstance != 0 || d[4] == flagsInternal
}

// bootSelector returns the selector that reports a boot target.
func bootSelector(target machine.SourceKind, mode machine.Mode, d *dialect.IPMI) byte {
	for s := range byte(len(bootDevices)) { // lowest selector first
		if is, ok := d.EFIBootDevices[s]; ok && is == target && mode == machine.UEFI {
			return s
		}
	}
	return bootSelectors[target]
}

// setBootFlags turns the boot flags into the boot override that Redfish shows.
// Flags that Redfish has no property for are stored beside it.
func setBootFlags(x *Request, c *machine.SetSystemBootOptions, d []byte) error {
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
		o.Target = bootTarget(d[1], o.Mode, &x.Host.Dialect().IPMI)
		if d[0]&flagsPersistent != 0 {
			if x.Session != nil && x.Session.Privilege < wire.Administrator {
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

// bootFlags returns the boot flags of the current override, whichever protocol
// set it.
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
