package sys

import (
	"encoding/binary"
	"fmt"
	"time"
)

// NVMe admin commands (NVM Express base specification 2.0, figure 138).
const (
	nvmeIdentify = 0x06
	nvmeFormat   = 0x80

	nvmeNamespace  = 0 // Identify: namespace data structure
	nvmeController = 1
)

// nvmeCommand is struct nvme_passthru_cmd of Linux' nvme_ioctl.h.
type nvmeCommand struct {
	opcode                                              uint8
	flags                                               uint8
	_                                                   uint16
	nsid                                                uint32
	_                                                   [2]uint32
	metadata, addr                                      uint64
	metadataLen, dataLen                                uint32
	cdw10, cdw11, cdw12, cdw13, cdw14, cdw15, timeoutMS uint32
	result                                              uint32
}

// nvmeDevice executes an admin command on a namespace. data receives the result.
type nvmeDevice func(c nvmeCommand, data []byte) error

// Secure erase settings of Format NVM (figure 331, SES).
const (
	eraseUserData = 1
	eraseCrypto   = 2
)

// nvmeErase erases a namespace: cryptographically if it can. It refuses on a
// controller that formats all of its namespaces at once, because the others may be
// in use.
func nvmeErase(do nvmeDevice, nsid uint32) (string, error) {
	controller, namespace := make([]byte, 4096), make([]byte, 4096)
	for _, x := range []struct {
		what uint32
		nsid uint32
		data []byte
	}{{nvmeController, 0, controller}, {nvmeNamespace, nsid, namespace}} {
		c := nvmeCommand{opcode: nvmeIdentify, nsid: x.nsid, cdw10: x.what, timeoutMS: uint32(ataQuick.Milliseconds())}
		if err := do(c, x.data); err != nil {
			return "", fmt.Errorf("%w: it does not tell what it can do: %v", ErrNoErase, err) //nolint:errorlint // the kind is ErrNoErase
		}
	}
	// Figures 275 and 97: OACS bit 1, NN, FNA bits 0 to 2, FLBAS.
	formats := binary.LittleEndian.Uint16(controller[256:])&2 != 0
	namespaces := binary.LittleEndian.Uint32(controller[516:])
	attributes := controller[524]
	format := uint32(namespace[26]&0x0f) | uint32(namespace[26]&0x60)>>5<<12
	switch {
	case !formats:
		return "", ErrNoErase
	case attributes&3 != 0 && namespaces > 1:
		return "", fmt.Errorf("%w: it would erase all of its %d namespaces", ErrNoErase, namespaces)
	}
	name, kind := "NVMe Format", uint32(eraseUserData)
	if attributes&4 != 0 {
		name, kind = "NVMe Format with cryptographic erase", eraseCrypto
	}
	// The LBA format stays, with its metadata and protection settings.
	settings := uint32(namespace[26]&0x10) | uint32(namespace[29]&0x0f)<<5
	c := nvmeCommand{opcode: nvmeFormat, nsid: nsid, cdw10: format | settings | kind<<9, timeoutMS: uint32(ataSlow / time.Millisecond)}
	if err := do(c, nil); err != nil {
		return "", fmt.Errorf("sys: %s: %w", name, err)
	}
	return name, nil
}
