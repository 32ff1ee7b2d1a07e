package sys

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of Linux's scsi/sg.h and nvme_ioctl.h.
const (
	sgIO           = 0x2285
	nvmeIoctlID    = 0x4e40
	nvmeIoctlAdmin = 0xc0484e41
)

// sgHeader is struct sg_io_hdr of scsi/sg.h.
type sgHeader struct {
	interfaceID, direction            int32
	cmdLen, maxSense                  uint8
	iovecCount                        uint16
	dataLen                           uint32
	data, command, sense              unsafe.Pointer
	timeoutMS, flags                  uint32
	packID                            int32
	user                              unsafe.Pointer
	status, masked, message, senseLen uint8
	hostStatus, driverStatus          uint16
	residual                          int32
	duration, info                    uint32
}

const (
	sgNone       = -1
	sgToDevice   = -2
	sgFromDevice = -3
	senseBytes   = 32
	goodStatus   = 0
)

// SecureErase implements Eraser: NVMe devices by their own commands, all others by
// ATA commands in SCSI, which disks other than ATA refuse. Files cannot.
func (b *fileBlock) SecureErase(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if !b.device {
		return "", ErrNoErase
	}
	b.dirty.Store(true)
	if strings.HasPrefix(filepath.Base(b.file.Name()), "nvme") {
		var nsid uint32
		err := b.control(func(fd int) (err error) {
			n, err := unix.IoctlRetInt(fd, nvmeIoctlID)
			nsid = uint32(n)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("%w: %v", ErrNoErase, err) //nolint:errorlint // the kind is ErrNoErase
		}
		return nvmeErase(b.nvme, nsid)
	}
	return ataErase(b.ata)
}

func (b *fileBlock) nvme(c nvmeCommand, data []byte) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	if len(data) > 0 {
		pin.Pin(&data[0])
		c.addr, c.dataLen = uint64(uintptr(unsafe.Pointer(&data[0]))), uint32(len(data))
	}
	return b.control(func(fd int) error {
		status, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), nvmeIoctlAdmin, uintptr(unsafe.Pointer(&c)))
		switch {
		case errno != 0:
			return errno
		case status != 0:
			return fmt.Errorf("the device answers status %#x", status)
		}
		return nil
	})
}

func (b *fileBlock) ata(cdb [16]byte, data []byte, limit time.Duration) error {
	sense := make([]byte, senseBytes)
	h := sgHeader{
		interfaceID: 'S', direction: sgNone, cmdLen: uint8(len(cdb)), maxSense: senseBytes,
		timeoutMS: uint32(min(limit.Milliseconds(), 1<<32-1)),
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&cdb[0])
	pin.Pin(&sense[0])
	h.command, h.sense = unsafe.Pointer(&cdb[0]), unsafe.Pointer(&sense[0])
	if len(data) > 0 {
		pin.Pin(&data[0])
		h.data, h.dataLen, h.direction = unsafe.Pointer(&data[0]), uint32(len(data)), sgToDevice
		if cdb[1] == ataPIOIn {
			h.direction = sgFromDevice
		}
	}
	if err := b.ioctl(sgIO, unsafe.Pointer(&h)); err != nil {
		return err
	}
	switch {
	case h.hostStatus != 0:
		return fmt.Errorf("host adapter status %#x", h.hostStatus)
	case h.status != goodStatus && h.senseLen > 0:
		return fmt.Errorf("SCSI status %#x, sense % x", h.status, sense[:min(int(h.senseLen), senseBytes)])
	case h.status != goodStatus:
		return fmt.Errorf("SCSI status %#x", h.status)
	case h.driverStatus&0x0f != 0 && h.driverStatus&0x0f != driverSense:
		return errors.New("the driver could not carry the command out")
	}
	return nil
}

// driverSense means that there is sense data, which alone is no error.
const driverSense = 8
