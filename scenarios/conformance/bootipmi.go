package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// bootFlags is boot option parameter 5 (§28.13).
type bootFlags struct {
	name   string
	flags  byte // valid, persistent, EFI
	device byte
}

// ipmiBootDevices sets and reads the boot device by IPMI.
func ipmiBootDevices(ctx context.Context, r *Run) Outcome {
	const (
		setOptions, getOptions = 0x08, 0x09
		valid, persistent, efi = 0x80, 0x40, 0x20
		pxe, disk, cd          = 0x04, 0x08, 0x14
	)
	s, err := r.IPMISession(ctx)
	if err != nil {
		return Judge(err)
	}
	defer r.IPMIClose(ctx, s)
	read := ipmi.Request{NetFn: ipmi.Chassis, Command: getOptions, Data: []byte{5, 0, 0}, Name: "Get System Boot Options"}
	before, err := r.IPMIDo(ctx, s, read)
	if err == nil {
		err = short(read.Name, before, 7)
	}
	if err != nil {
		return judgeIPMI(err)
	}
	back := append([]byte{byte(ipmi.Chassis), setOptions, 5}, before[2:7]...)
	o := Passed("")
	_, err = r.IPMIChange(ctx, s, Reversible, ipmi.Request{NetFn: ipmi.Chassis, Command: setOptions, Data: []byte{3, 0x08}, Name: "Set System Boot Options 3"})
	if code := ipmi.Code(0); errors.As(err, &code) {
		o = Warned("boot option parameter 3 is refused: %v", code).Quirky("ipmi-no-bootparam3")
	} else if err != nil {
		return Judge(err)
	}
	for _, want := range []bootFlags{
		{"PXE", valid, pxe}, {"disk", valid, disk}, {"CD", valid, cd}, {"PXE by EFI", valid | efi, pxe}, {"disk, persistent", valid | persistent, disk}, {"disk by EFI", valid | efi, disk},
	} {
		_, err := r.IPMIChange(ctx, s, Reversible, ipmi.Request{NetFn: ipmi.Chassis, Command: setOptions, Data: []byte{5, want.flags, want.device, 0, 0, 0}, Name: "Set System Boot Options 5"}, back)
		if err != nil {
			return judgeIPMI(fmt.Errorf("%s: %w", want.name, err))
		}
		now, err := r.IPMIDo(ctx, s, read)
		if err == nil {
			err = short(read.Name, now, 7)
		}
		if err != nil {
			return judgeIPMI(err)
		}
		if now[2]&0xE0 != want.flags || now[3]&0x3C != want.device {
			return Failed("boot flags are %02X %02X after %s was set, want %02X %02X", now[2], now[3], want.name, want.flags, want.device)
		}
		if want.name == "disk by EFI" {
			o = r.efiDisk(ctx, o)
		}
	}
	return o
}

// efiDisk asks Redfish whether the boot device of the disk with EFI boots the disk.
func (r *Run) efiDisk(ctx context.Context, o Outcome) Outcome {
	r.Forget()
	place, err := r.Place(ctx)
	if err != nil {
		return o
	}
	boot := overrideOf(place.System.At("Boot"))
	if boot.target == "None" && o.Verdict == Pass {
		return Warned("the disk with EFI, selector 2, has no effect: Redfish shows no override").Quirky("ipmi-smc-uefi-0x24")
	}
	return o
}

// judgeIPMI is Judge, for which a completion code and silence within a session are
// the BMC's.
func judgeIPMI(err error) Outcome {
	if err == nil {
		return Passed("")
	}
	code, status := ipmi.Code(0), ipmi.Status(0)
	if errors.As(err, &code) || errors.As(err, &status) || errors.Is(err, ipmi.ErrMalformed) || errors.Is(err, ipmi.ErrNoAnswer) ||
		errors.Is(err, ipmi.ErrPassword) || errors.Is(err, ipmi.ErrKey) {
		return Failed("%v", err)
	}
	return Judge(err)
}
