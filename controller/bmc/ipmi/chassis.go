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
	// A lost answer does not tell whether it is done: done twice a reset is
	// another reset.
	control  = request{fn: types.NetFnChassisRequest, cmd: 0x02, name: "Chassis Control", once: true}
	identify = request{fn: types.NetFnChassisRequest, cmd: 0x04, name: "Chassis Identify"}
	setBoot  = request{fn: types.NetFnChassisRequest, cmd: 0x08, name: "Set System Boot Options", kinds: parameters}
	getBoot  = request{fn: types.NetFnChassisRequest, cmd: 0x09, name: "Get System Boot Options", kinds: parameters}

	// parameters are the codes of commands with parameters that need not exist.
	parameters = map[types.CompletionCode]error{
		0x80: bmc.ErrUnsupported, 0x81: bmc.ErrUnreachable, 0xC9: bmc.ErrUnsupported, 0xCC: bmc.ErrUnsupported,
	}
)

// status is a chassis status (§28.2).
type status struct {
	on, lit, fault bool
}

func (s *session) chassis(ctx context.Context) (status, error) {
	b, err := s.command(ctx, getChassis)
	if err != nil {
		return status{}, err
	}
	if len(b) < 3 {
		return status{}, short(getChassis, b)
	}
	const (
		overload, powerFault, controlFault = 0x02, 0x08, 0x10
		drive, cooling                     = 0x04, 0x08
	)
	return status{
		on:    b[0]&1 != 0,
		lit:   b[2]>>4&3 != 0,
		fault: b[0]&(overload|powerFault|controlFault) != 0 || b[2]&(drive|cooling) != 0,
	}, nil
}

// short says that an answer has too few bytes.
func short(r request, b []byte) error {
	return fmt.Errorf("%s: an answer of %d bytes", r.name, len(b))
}

// actions are the bytes of the power actions (§28.3).
var actions = map[bmc.PowerAction]byte{
	bmc.PowerOff: 0, bmc.PowerOn: 1, bmc.PowerCycle: 2, bmc.PowerReset: 3, bmc.PowerSoftOff: 5,
}

// target is the state that a power action asks for; others ask for a change.
var target = map[bmc.PowerAction]bool{bmc.PowerOn: true, bmc.PowerOff: false, bmc.PowerSoftOff: false}

// SetPower does a power action, unless the system is as wanted: BMCs differ on
// whether that is an error.
func (c *client) SetPower(ctx context.Context, a bmc.PowerAction) error {
	return c.do(ctx, "power "+string(a), func(s *session) error {
		if _, ok := actions[a]; !ok {
			return bmc.ErrUnsupported
		}
		now, err := s.chassis(ctx)
		if err != nil {
			return err
		}
		act := a
		if !now.on && (a == bmc.PowerReset || a == bmc.PowerCycle) {
			act = bmc.PowerOn // refused with D5h, or taken and not done
		}
		want, state := target[act]
		if state && want == now.on {
			return nil
		}
		r := control
		r.once = !state
		_, err = s.command(ctx, r, actions[act])
		if code := new(codeError); errors.As(err, &code) && state {
			// Perhaps it came to that state by itself in between.
			if now, e := s.chassis(ctx); e == nil && now.on == want {
				return nil
			}
		}
		return err
	})
}

// Identify switches the light of the chassis.
func (c *client) Identify(ctx context.Context, on bool) error {
	return c.do(ctx, "identify", func(s *session) error {
		if !on {
			_, err := s.command(ctx, identify, 0)
			return unsupported("Identify", err)
		}
		const longest = 0xFF // seconds
		_, err := s.command(ctx, identify, 0, 1)
		if refused(err, 0xC7, 0xC9, 0xCC) {
			// IPMI v1.5 has no light without an end.
			_, err = s.command(ctx, identify, longest)
		}
		if refused(err, 0xC7, 0xC9, 0xCC) {
			return &bmc.UnsupportedError{Verb: "Identify", Why: err.Error()}
		}
		return unsupported("Identify", err)
	})
}

// unsupported names the verb of a command that the BMC does not have.
func unsupported(verb string, err error) error {
	if refused(err, 0xC1, 0xC2, 0xD6) {
		return &bmc.UnsupportedError{Verb: verb, Why: err.Error()}
	}
	return err
}

// Parameters of the boot options (§28.13), and bits of the boot flags.
const (
	paramClearing = 3
	paramFlags    = 5

	// keepFlags makes boot flags outlive the 60 s within which a power command
	// must follow (parameter 3, bit 3): who sets them here may take longer.
	keepFlags = 0x08

	flagsValid      = 0x80
	flagsPersistent = 0x40
	flagsEFI        = 0x20
)

// selectors are the boot devices of the boot flags, data 2, bits 5:2.
var selectors = map[bmc.Device]byte{bmc.BootNone: 0, bmc.BootPXE: 1, bmc.BootDisk: 2, bmc.BootCD: 5}

// devices are what the selectors mean. Those that no override of ours asks for
// keep a name that people know.
var devices = map[byte]bmc.Device{
	0: bmc.BootNone, 1: bmc.BootPXE, 2: bmc.BootDisk, 3: "disk (safe mode)", 4: "diagnostic partition",
	5: bmc.BootCD, 6: "BIOS setup", 7: "remote floppy", 8: bmc.BootCD, 9: "remote medium", 11: "remote disk", 15: "floppy",
}

// flags are boot flags.
type flags struct {
	valid, persistent, efi bool
	selector               byte
}

func (s *session) bootFlags(ctx context.Context) (flags, error) {
	b, err := s.command(ctx, getBoot, paramFlags, 0, 0)
	if err != nil {
		return flags{}, err
	}
	if len(b) < 4 {
		return flags{}, short(getBoot, b)
	}
	b = b[2:] // version and parameter
	return flags{
		valid: b[0]&flagsValid != 0, persistent: b[0]&flagsPersistent != 0, efi: b[0]&flagsEFI != 0, selector: b[1] >> 2 & 0x0F,
	}, nil
}

// boot is the override that flags are.
func (f flags) boot(id identity) bmc.Boot {
	if !f.valid || f.selector == 0 {
		return bmc.Boot{}
	}
	b := bmc.Boot{Device: devices[f.selector], Mode: bmc.LegacyBIOS, Persistent: f.persistent}
	if f.efi {
		b.Mode = bmc.UEFI
	}
	if f.selector == remoteMedium && f.efi && id.supermicro() {
		b.Device = bmc.BootDisk
	}
	if b.Device == "" {
		b.Device = bmc.Device(fmt.Sprintf("device %d", f.selector))
	}
	return b
}

// remoteMedium is what Supermicro's firmware takes for a disk that boots with
// UEFI, for which it does not take 2 (Ironic's ipmitool driver, quirks of
// set_boot_device).
const remoteMedium = 9

// SetBoot sets the boot flags. It writes parameter 5 alone, as Ironic does: some
// BMCs have no "set in progress", and go-ipmi's own way gives up at that
// without a word.
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
		want := flags{valid: true, persistent: b.Persistent && selector != 0, efi: now.efi, selector: selector}
		if b.Mode != bmc.BootModeAny {
			want.efi = b.Mode == bmc.UEFI
		}
		if b.Device == bmc.BootDisk && want.efi && id.supermicro() {
			want.selector = remoteMedium
		}
		if _, err := s.command(ctx, setBoot, paramClearing, keepFlags); err != nil && !refusedAtAll(err) {
			return err // but not because the BMC has no such parameter
		}
		if _, err := s.command(ctx, setBoot, paramFlags, want.bits(), want.selector<<2, 0, 0, 0); err != nil {
			return err
		}
		return s.verifyBoot(ctx, want)
	})
}

func refusedAtAll(err error) bool { return errors.As(err, new(*codeError)) }

func (f flags) bits() byte {
	b := byte(flagsValid)
	if f.persistent {
		b |= flagsPersistent
	}
	if f.efi {
		b |= flagsEFI
	}
	return b
}

// verifyBoot reads until the flags are as wanted, a few times: some BMCs show
// what they accepted a moment later, some never do what they accepted.
func (s *session) verifyBoot(ctx context.Context, want flags) error {
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
				return s.client.explain(ctx, getBoot.name, err)
			}
		}
	}
	return errors.New("the BMC accepted it and did not set it")
}
