package systest

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/metalab-dev/metalab/agent/sys"
)

// System is a sys.System over a Machine. It shows partitions and software RAID on
// the disks like the kernel, udev and mdadm, and reads a disk again when it is
// closed after writes.
type System struct {
	machine Machine
	disks   []placedDisk
	open    map[string]func() (sys.Block, error) // by kernel name; constant
	erase   map[string]string                    // Disk.Erase by kernel name; constant

	mu        sync.Mutex
	disksRead bool // the disks have been read
	layout
	tree *tree
	held map[string]bool // names of open devices
}

// New returns a System. Disks keep their order; a disk without a name, or with one
// in use, gets the next free one.
func New(m Machine) *System {
	if m.Arch == "" {
		m.Arch = "x86_64"
	}
	m.NICs, m.Disks = slices.Clone(m.NICs), slices.Clone(m.Disks)
	s := &System{machine: m, disks: placeDisks(m.Disks), open: map[string]func() (sys.Block, error){}, erase: map[string]string{}, held: map[string]bool{}}
	for _, d := range s.disks {
		s.open[d.Name], s.erase[d.Name] = d.Open, d.Erase
	}
	return s
}

// FS implements sys.System. It returns the present file system.
func (s *System) FS() fs.ReadLinkFS {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readDisks()
	return s.tree
}

// OpenBlock implements sys.System. Like on Linux it is exclusive: a disk is in use
// with each of its partitions, and a partition with its array.
func (s *System) OpenBlock(name string) (sys.Block, error) {
	s.mu.Lock()
	s.readDisks()
	open, disk := s.find(name)
	if open == nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: %q", sys.ErrNoDevice, name)
	}
	busy := s.busy(name)
	if !busy {
		s.held[name] = true
	}
	s.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("systest: /dev/%s is in use", name)
	}
	b, err := open()
	if err != nil {
		s.release(name, "")
		return nil, fmt.Errorf("systest: open /dev/%s: %w", name, err)
	}
	h := &openDevice{Block: b, erase: s.erase[name]}
	h.release = sync.OnceFunc(func() {
		if !h.written.Load() {
			disk = ""
		}
		s.release(name, disk)
	})
	return h, nil
}

// find returns the function that opens a device, and its name if it is a whole
// disk.
func (s *System) find(name string) (open func() (sys.Block, error), disk string) {
	if open, ok := s.open[name]; ok {
		return open, name
	}
	for _, p := range s.parts {
		if p.number > 0 && p.name == name {
			return func() (sys.Block, error) {
				b, err := p.open()
				if err != nil {
					return nil, err
				}
				return &window{Block: b, off: p.off, size: p.size}, nil
			}, ""
		}
	}
	for _, a := range s.arrays {
		if a.kernel == name {
			return a.openArray, ""
		}
	}
	return nil, ""
}

// busy reports whether a device is in use.
func (s *System) busy(name string) bool {
	if s.held[name] {
		return true
	}
	for _, p := range s.parts {
		if p.name == name && s.arrayOf(p) != nil {
			return true
		}
		if p.disk == name && (s.held[p.name] || s.arrayOf(p) != nil) || p.name == name && s.held[p.disk] {
			return true
		}
	}
	return false
}

// release ends the use of a name; disk is a disk that was written to, or "".
func (s *System) release(name, disk string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, name)
	if disk != "" {
		s.scan(disk)
		s.assemble(false)
	}
}

// openDevice is an open device that releases its name when it is closed.
type openDevice struct {
	sys.Block
	erase   string
	written atomic.Bool
	release func()
}

func (h *openDevice) WriteAt(p []byte, off int64) (int, error) {
	h.written.Store(true)
	return h.Block.WriteAt(p, off)
}

func (h *openDevice) Zero(off, n int64) error {
	h.written.Store(true)
	return h.Block.Zero(off, n)
}

// SecureErase implements sys.Eraser like a device that erases cryptographically:
// at once.
func (h *openDevice) SecureErase(context.Context) (string, error) {
	if h.erase == "" {
		return "", sys.ErrNoErase
	}
	return h.erase, h.Zero(0, h.Size()/512*512)
}

func (h *openDevice) Close() error {
	defer h.release()
	return h.Block.Close()
}

// TempFile implements sys.System.
func (s *System) TempFile() (sys.Scratch, error) {
	if s.machine.Scratch != nil {
		return s.machine.Scratch()
	}
	return sys.NewScratch("")
}

// Arch implements sys.System.
func (s *System) Arch() string { return s.machine.Arch }

// Hostname implements sys.System.
func (s *System) Hostname() string { return s.machine.Hostname }

// Addresses implements sys.System.
func (s *System) Addresses(nic string) []string {
	for _, n := range s.machine.NICs {
		if n.Name == nic {
			return slices.Clone(n.IPs)
		}
	}
	return nil
}

// ReceiveFrames implements sys.FrameReceiver. It returns the periodic frames of
// each NIC at once; others never arrive.
func (s *System) ReceiveFrames(_ context.Context, etherType uint16, nics []string) map[string][]byte {
	heard := map[string][]byte{}
	for _, n := range s.machine.NICs {
		if !slices.Contains(nics, n.Name) || n.Down || !n.Carrier {
			continue
		}
		for _, f := range n.Frames {
			if heard[n.Name] == nil && len(f) > 13 && binary.BigEndian.Uint16(f[12:]) == etherType {
				heard[n.Name] = slices.Clone(f)
			}
		}
	}
	return heard
}
