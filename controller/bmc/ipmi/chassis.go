package ipmi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Chassis commands (IPMI v2.0 rev 1.1, §28).
var (
	getChassis = request{fn: types.NetFnChassisRequest, cmd: 0x01, name: "Get Chassis Status"}
	// A lost answer leaves open whether the command was carried out, and a second
	// reset would be another reset.
	chassisControl  = request{fn: types.NetFnChassisRequest, cmd: 0x02, name: "Chassis Control", noRetry: true}
	chassisIdentify = request{fn: types.NetFnChassisRequest, cmd: 0x04, name: "Chassis Identify"}
	setBootOptions  = request{fn: types.NetFnChassisRequest, cmd: 0x08, name: "Set System Boot Options", kinds: parameterCodes}
	getBootOptions  = request{fn: types.NetFnChassisRequest, cmd: 0x09, name: "Get System Boot Options", kinds: parameterCodes}

	// parameterCodes maps the completion codes of commands with optional
	// parameters.
	parameterCodes = map[types.CompletionCode]error{
		0x80: bmc.ErrUnsupported, 0x81: bmc.ErrUnreachable, 0xC9: bmc.ErrUnsupported, 0xCC: bmc.ErrUnsupported,
	}
)

// chassisStatus holds the fields of Get Chassis Status that the driver uses
// (§28.2).
type chassisStatus struct {
	on, lit, fault bool
}

func (s *session) chassis(ctx context.Context) (chassisStatus, error) {
	b, err := s.command(ctx, getChassis)
	if err != nil {
		return chassisStatus{}, err
	}
	if len(b) < 3 {
		return chassisStatus{}, shortResponse(getChassis, b)
	}
	const (
		overload, powerFault, controlFault = 0x02, 0x08, 0x10
		drive, cooling                     = 0x04, 0x08
	)
	return chassisStatus{
		on:    b[0]&1 != 0,
		lit:   b[2]>>4&3 != 0,
		fault: b[0]&(overload|powerFault|controlFault) != 0 || b[2]&(drive|cooling) != 0,
	}, nil
}

// shortResponse returns the error for an answer with too few bytes.
func shortResponse(r request, b []byte) error {
	return fmt.Errorf("%s: an answer of %d bytes", r.name, len(b))
}

// controlCodes maps power actions to the data byte of Chassis Control (§28.3).
var controlCodes = map[bmc.PowerAction]byte{
	bmc.PowerOff: 0, bmc.PowerOn: 1, bmc.PowerCycle: 2, bmc.PowerReset: 3, bmc.PowerSoftOff: 5,
}

// powerTargets maps the power actions that ask for a state; the others ask for a
// change.
var powerTargets = map[bmc.PowerAction]bool{bmc.PowerOn: true, bmc.PowerOff: false, bmc.PowerSoftOff: false}

// SetPower sends a power action, unless the system is in the wanted state already:
// BMCs differ on whether that is an error.
func (c *client) SetPower(ctx context.Context, a bmc.PowerAction) error {
	return c.do(ctx, "power "+string(a), func(s *session) error {
		if _, ok := controlCodes[a]; !ok {
			return bmc.ErrUnsupported
		}
		now, err := s.chassis(ctx)
		if err != nil {
			return err
		}
		act := a
		if !now.on && (a == bmc.PowerReset || a == bmc.PowerCycle) {
			act = bmc.PowerOn // with the power off a reset is refused with D5h, or accepted and ignored
		}
		want, state := powerTargets[act]
		if state && want == now.on {
			return nil
		}
		r := chassisControl
		r.noRetry = !state
		_, err = s.command(ctx, r, controlCodes[act])
		if code := new(codeError); errors.As(err, &code) && state {
			// The system may have reached the state in the meantime.
			if now, e := s.chassis(ctx); e == nil && now.on == want {
				return nil
			}
		}
		return err
	})
}

// Identify switches the identification light of the chassis.
func (c *client) Identify(ctx context.Context, on bool) error {
	return c.do(ctx, "identify", func(s *session) error {
		if !on {
			_, err := s.command(ctx, chassisIdentify, 0)
			return unsupported("Identify", err)
		}
		const longest = 0xFF // seconds
		_, err := s.command(ctx, chassisIdentify, 0, 1)
		if hasCode(err, 0xC7, 0xC9, 0xCC) {
			// IPMI v1.5 has no identification without a time limit.
			_, err = s.command(ctx, chassisIdentify, longest)
		}
		if hasCode(err, 0xC7, 0xC9, 0xCC) {
			return &bmc.UnsupportedError{Verb: "Identify", Why: err.Error()}
		}
		return unsupported("Identify", err)
	})
}

// unsupported turns an invalid-command completion code into an UnsupportedError
// for verb.
func unsupported(verb string, err error) error {
	if hasCode(err, 0xC1, 0xC2, 0xD6) {
		return &bmc.UnsupportedError{Verb: verb, Why: err.Error()}
	}
	return err
}

// Parameters of the boot options (§28.13), and bits of the boot flags.
const (
	paramClearing = 3
	paramFlags    = 5

	// keepFlags prevents the BMC from clearing the boot flags after 60 s without a
	// power command (parameter 3, bit 3): the caller may take longer.
	keepFlags = 0x08

	flagsValid      = 0x80
	flagsPersistent = 0x40
	flagsEFI        = 0x20
)

// selectors maps devices to the boot device selectors of the boot flags (data 2,
// bits 5:2).
var selectors = map[bmc.Device]byte{bmc.BootNone: 0, bmc.BootPXE: 1, bmc.BootDisk: 2, bmc.BootCD: 5}

// devices maps the selectors back. Those without a device of this project have a
// readable name.
var devices = map[byte]bmc.Device{
	0: bmc.BootNone, 1: bmc.BootPXE, 2: bmc.BootDisk, 3: "disk (safe mode)", 4: "diagnostic partition",
	5: bmc.BootCD, 6: "BIOS setup", 7: "remote floppy", 8: bmc.BootCD, 9: "remote medium", 11: "remote disk", 15: "floppy",
}

// bootFlags holds the boot flags (parameter 5).
type bootFlags struct {
	valid, persistent, efi bool
	selector               byte
}

func (s *session) bootFlags(ctx context.Context) (bootFlags, error) {
	b, err := s.command(ctx, getBootOptions, paramFlags, 0, 0)
	if err != nil {
		return bootFlags{}, err
	}
	if len(b) < 4 {
		return bootFlags{}, shortResponse(getBootOptions, b)
	}
	b = b[2:] // skip parameter version and number
	return bootFlags{
		valid: b[0]&flagsValid != 0, persistent: b[0]&flagsPersistent != 0, efi: b[0]&flagsEFI != 0, selector: b[1] >> 2 & 0x0F,
	}, nil
}

// boot converts the flags to a bmc.Boot.
func (f bootFlags) boot(id identity) bmc.Boot {
	if !f.valid || f.selector == 0 {
		return bmc.Boot{}
	}
	b := bmc.Boot{Device: devices[f.selector], Mode: bmc.LegacyBIOS, Persistent: f.persistent}
	if f.efi {
		b.Mode = bmc.UEFI
	}
	if f.selector == supermicroUEFIDisk && f.efi && id.supermicro() {
		b.Device = bmc.BootDisk
	}
	if b.Device == "" {
		b.Device = bmc.Device(fmt.Sprintf("device %d", f.selector))
	}
	return b
}

// supermicroUEFIDisk is the selector that Supermicro's firmware takes for a UEFI
// disk; it ignores 2 (Ironic's ipmitool driver, quirks of set_boot_device).
const supermicroUEFIDisk = 9

// SetBoot sets the boot flags. Like Ironic it writes parameter 5 without "set in
// progress", which some BMCs do not have; go-ipmi's own function gives up silently
// on those.
func (c *client) SetBoot(ctx context.Context, b bmc.Boot) error {
	return c.do(ctx, "boot override", func(s *session) error {
		selector, ok := selectors[b.Device]
		switch {
		case !ok:
			return fmt.Errorf("%w: boot from %q", bmc.ErrUnsupported, b.Device)
		case b.Mode == bmc.UEFISecure:
			return fmt.Errorf("%w: IPMI has no secure boot", bmc.ErrUnsupported)
		}
		now, err := s.bootFlags(ctx)
		if err != nil {
			return err
		}
		id, err := s.identify(ctx)
		if err != nil {
			return err
		}
		want := bootFlags{valid: true, persistent: b.Persistent && selector != 0 && !c.bootOnce(), efi: now.efi, selector: selector}
		if b.Mode != bmc.BootModeAny {
			want.efi = b.Mode == bmc.UEFI
		}
		if b.Device == bmc.BootDisk && want.efi && id.supermicro() {
			want.selector = supermicroUEFIDisk
		}
		if _, err := s.command(ctx, setBootOptions, paramClearing, keepFlags); err != nil && !isRefusal(err) {
			return err // a BMC without this parameter refuses it with a completion code
		}
		if _, err := s.command(ctx, setBootOptions, paramFlags, want.bits(), want.selector<<2, 0, 0, 0); err != nil {
			return err
		}
		return s.verifyBoot(ctx, want)
	})
}

// bootOnce reports whether the session may set boot flags for the next boot only:
// the persistent bit needs ADMIN (IPMI v2.0 rev 1.1, table 28-14, boot flags, and
// appendix G, note 6).
func (c *client) bootOnce() bool { return c.level < types.PrivilegeLevelAdministrator }

func isRefusal(err error) bool { return errors.As(err, new(*codeError)) }

func (f bootFlags) bits() byte {
	b := byte(flagsValid)
	if f.persistent {
		b |= flagsPersistent
	}
	if f.efi {
		b |= flagsEFI
	}
	return b
}

// verifyBoot reads the flags until they are as wanted, a few times: some BMCs show
// them with a delay, some accept and ignore them.
func (s *session) verifyBoot(ctx context.Context, want bootFlags) error {
	const reads = 4
	for i := range reads {
		got, err := s.bootFlags(ctx)
		if err != nil {
			return err
		}
		if got == want || want.selector == 0 && (!got.valid || got.selector == 0) {
			return nil
		}
		if i < reads-1 {
			if err := s.client.sleep(ctx, time.Second<<i); err != nil {
				return s.client.stepError(ctx, getBootOptions.name, err)
			}
		}
	}
	return errors.New("the BMC accepted it and did not set it")
}
