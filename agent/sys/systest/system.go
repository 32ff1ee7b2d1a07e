package systest

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/agent/sys"
)

// System is a sys.System over a Machine.
type System struct {
	machine Machine
	tree    *tree
	open    map[string]func() (sys.Block, error) // by kernel name; fixed
	erase   map[string]string                    // likewise: Disk.Erase

	mu   sync.Mutex
	held map[string]bool // names that are open
}

// New renders the machine. Disks keep their order; a disk without a name, or
// with one that is taken, gets the next free one.
func New(m Machine) *System {
	if m.Arch == "" {
		m.Arch = "x86_64"
	}
	m.NICs, m.Disks = slices.Clone(m.NICs), slices.Clone(m.Disks)
	s := &System{machine: m, tree: newTree(), open: map[string]func() (sys.Block, error){}, erase: map[string]string{}, held: map[string]bool{}}
	renderProc(s.tree, m)
	renderDMI(s.tree, m)
	renderNICs(s.tree, m.NICs)
	renderVirtual(s.tree)
	for _, d := range place(m.Disks) {
		renderDisk(s.tree, d)
		s.open[d.Name], s.erase[d.Name] = d.Open, d.Erase
	}
	if m.VirtualCD != "" {
		renderCD(s.tree, m.VirtualCD)
	}
	return s
}

// FS implements sys.System.
func (s *System) FS() fs.ReadLinkFS { return s.tree }

// OpenBlock implements sys.System. It is exclusive, as on Linux.
func (s *System) OpenBlock(name string) (sys.Block, error) {
	open := s.open[name]
	if open == nil {
		return nil, fmt.Errorf("%w: %q", sys.ErrNoDevice, name)
	}
	s.mu.Lock()
	busy := s.held[name]
	s.held[name] = true
	s.mu.Unlock()
	if busy {
		return nil, fmt.Errorf("systest: /dev/%s is in use", name)
	}
	b, err := open()
	if err != nil {
		s.release(name)
		return nil, fmt.Errorf("systest: open /dev/%s: %w", name, err)
	}
	return &held{Block: b, erase: s.erase[name], release: sync.OnceFunc(func() { s.release(name) })}, nil
}

func (s *System) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, name)
}

// held is a block device that gives its name free when it is closed.
type held struct {
	sys.Block
	erase   string
	release func()
}

// SecureErase implements sys.Eraser as a device does that crypto-erases: at
// once.
func (h *held) SecureErase(context.Context) (string, error) {
	if h.erase == "" {
		return "", sys.ErrNoErase
	}
	return h.erase, h.Zero(0, h.Size()/512*512)
}

func (h *held) Close() error {
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
