package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ATA commands (ACS-3) and the SCSI command that carries them (SAT-4 §12.2.2).
const (
	ataIdentify        = 0xec
	ataSetPassword     = 0xf1
	ataErasePrepare    = 0xf3
	ataEraseUnit       = 0xf4
	ataDisablePassword = 0xf6

	passThrough16 = 0x85
	ataNonData    = 3 << 1 // protocols
	ataPIOIn      = 4 << 1
	ataPIOOut     = 5 << 1
)

// ataCDB returns the SCSI command for an ATA command, with one block of data in or
// out or none.
func ataCDB(command byte, protocol byte) [16]byte {
	cdb := [16]byte{0: passThrough16, 1: protocol, 14: command}
	const blocks, length, fromDevice = 1 << 2, 2, 1 << 3 // T_LENGTH 2: the length is in the COUNT field
	switch protocol {
	case ataPIOIn:
		cdb[2], cdb[6] = blocks|length|fromDevice, 1
	case ataPIOOut:
		cdb[2], cdb[6] = blocks|length, 1
	}
	return cdb
}

// ataSecurity holds the security feature set of IDENTIFY DEVICE (ACS-3 §7.12.7,
// words 82, 89, 90 and 128).
type ataSecurity struct {
	supported, enabled, locked, frozen, enhanced bool
	normalTime, enhancedTime                     time.Duration // estimated time of an erasure; 0 if unknown
}

func parseATASecurity(identify []byte) ataSecurity {
	word := func(i int) uint16 { return binary.LittleEndian.Uint16(identify[2*i:]) }
	w := word(128)
	return ataSecurity{
		supported: word(82)&2 != 0 && w&1 != 0, enabled: w&2 != 0, locked: w&4 != 0, frozen: w&8 != 0, enhanced: w&32 != 0,
		normalTime: ataEraseTime(word(89)), enhancedTime: ataEraseTime(word(90)),
	}
}

// ataEraseTime decodes a time in steps of two minutes. Bit 15 selects 15 bits
// instead of 8.
func ataEraseTime(w uint16) time.Duration {
	if w&0x8000 != 0 {
		return time.Duration(w&0x7fff) * 2 * time.Minute
	}
	return time.Duration(w&0xff) * 2 * time.Minute
}

// refusal returns why a device cannot erase itself now; nil if it can.
func (s ataSecurity) refusal() error {
	switch {
	case !s.supported:
		return ErrNoErase
	case s.frozen:
		return fmt.Errorf("%w: its security is frozen, by the firmware, until it is powered off", ErrNoErase)
	case s.enabled, s.locked:
		return fmt.Errorf("%w: somebody has set a password", ErrNoErase)
	}
	return nil
}

// ataPassword is the password for the erasure. It is not secret: the erasure
// removes it, and a known password lets people unlock a device that lost power
// during the erasure.
const ataPassword = "metalab-erase"

// ataPasswordBlock is the data of the commands with a password (ACS-3 §7.45): the
// user password, and in word 0 bit 1 the choice of the enhanced erasure.
func ataPasswordBlock(enhanced bool) []byte {
	p := make([]byte, 512)
	if enhanced {
		p[0] = 2
	}
	copy(p[2:34], ataPassword)
	return p
}

// ataDevice executes a command.
type ataDevice func(cdb [16]byte, data []byte, limit time.Duration) error

const (
	ataQuick = 30 * time.Second
	ataSlow  = 12 * time.Hour // if the device does not report the time
)

// ataErase makes an ATA device erase itself: enhanced if it supports that, which
// includes remapped sectors.
func ataErase(do ataDevice) (string, error) {
	identify := make([]byte, 512)
	if err := do(ataCDB(ataIdentify, ataPIOIn), identify, ataQuick); err != nil {
		return "", fmt.Errorf("%w: it is no ATA device: %v", ErrNoErase, err) //nolint:errorlint // the kind is ErrNoErase
	}
	s := parseATASecurity(identify)
	if err := s.refusal(); err != nil {
		return "", err
	}
	name, limit := "ATA Security Erase", s.normalTime
	if s.enhanced {
		name, limit = "ATA Enhanced Security Erase", s.enhancedTime
	}
	if limit == 0 {
		limit = ataSlow
	}
	if err := do(ataCDB(ataSetPassword, ataPIOOut), ataPasswordBlock(false), ataQuick); err != nil {
		return "", fmt.Errorf("%w: it takes no password: %v", ErrNoErase, err) //nolint:errorlint // as above
	}
	err := do(ataCDB(ataErasePrepare, ataNonData), nil, ataQuick)
	if err == nil {
		err = do(ataCDB(ataEraseUnit, ataPIOOut), ataPasswordBlock(s.enhanced), 2*limit)
	}
	if err != nil { // without the password a locked device cannot be used
		err = fmt.Errorf("sys: %s: %w", name, err)
		if undo := do(ataCDB(ataDisablePassword, ataPIOOut), ataPasswordBlock(false), ataQuick); undo != nil {
			err = errors.Join(err, fmt.Errorf("sys: the device is still locked with the password %q: %w", ataPassword, undo))
		}
		return "", err
	}
	return name, nil
}
