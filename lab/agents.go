package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"github.com/metalab-dev/metalab/agent"
	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/agent/sys/systest"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/lab/pxe"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// Names of the operating systems that a machine can run.
const (
	AgentOS = "agent"
	DiskOS  = "disk"
	liveOS  = "live" // from a CD or the network, and not the agent's
)

// maxBusyAgents is how many agents do a job at the same time. All share this
// machine's processors: a thousand agents that write images are no faster, and hold
// a thousand buffers.
const maxBusyAgents = 64

// agents finds out what machines boot, and runs the agent in this process on those
// that boot it, over their disks and NICs.
type agents struct {
	systems *systems // the systems of machines that have not booted the agent
	clock   *clock.Clock
	log     *slog.Logger
	net     *pxe.Network
	dir     string        // directory with the files of network boots
	started chan struct{} // closed when agents may run
	busy    chan struct{} // holds a token for each agent that does a job
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	stopped bool
	running map[string]*running // by host
	silent  map[string]bool     // hosts whose agents do not start
	group   sync.WaitGroup
}

type running struct {
	boot uint64
	stop context.CancelFunc
}

func newAgents(c *clock.Clock, log *slog.Logger, dir string, s *systems) *agents {
	a := &agents{clock: c, log: log, dir: dir, net: &pxe.Network{}, started: make(chan struct{}), busy: make(chan struct{}, maxBusyAgents), running: map[string]*running{}, silent: map[string]bool{}}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.systems = s
	s.networkSource = a.networkSource
	return a
}

func (a *agents) start() { close(a.started) }

// stop ends all agents and returns when they have ended.
func (a *agents) stop() {
	a.mu.Lock()
	a.stopped = true
	a.cancel()
	for _, r := range a.running {
		r.stop()
	}
	a.mu.Unlock()
	a.group.Wait()
	a.systems.stopAll()
}

// event handles a machine's event. The lab calls it for one event of a host at a
// time.
func (a *agents) event(h *rack.Host, ev machine.Event) {
	switch ev := ev.(type) {
	case machine.BootAttempted:
		if overNetwork[ev.Source.Kind] {
			a.tryNetworkBoot(h, ev)
		} else {
			a.tryLocalBoot(h, ev)
		}
	case machine.SystemStarted:
		switch ev.OS.Name {
		case AgentOS:
			a.run(h, ev.OS)
		case DiskOS, liveOS:
			a.systems.start(h, ev.OS)
		}
	case machine.SystemStopping:
		a.systems.shutdown(h, ev.OS.Boot)
	case machine.SystemStopped:
		a.systems.stop(h, ev.OS.Boot)
		a.stopAgent(h, ev.OS.Boot)
		a.deleteKey(h, ev.OS.Boot)
		if overNetwork[ev.OS.Source.Kind] {
			a.deleteNetworkBoot(h)
		}
	}
}

// tryLocalBoot answers a machine that tries a CD or a disk.
func (a *agents) tryLocalBoot(h *rack.Host, ev machine.BootAttempted) {
	defer a.clock.Enter()()
	name, why := bootContent(h, ev.Source)
	a.reply(h, ev, name, why)
}

// reply tells a machine what a boot source holds. name "" means that it holds
// nothing bootable, and why is the reason.
func (a *agents) reply(h *rack.Host, ev machine.BootAttempted, name, why string) {
	var answer machine.Command = machine.NotBootable{Boot: ev.Boot, Source: ev.Source}
	if name != "" {
		answer = machine.Loaded{Boot: ev.Boot, Source: ev.Source, Name: name, Busy: name == AgentOS}
	}
	a.log.Debug("boot source tried", "machine", h.Name(), "source", ev.Source, "holds", name, "why", why)
	if err := h.Await(context.Background(), answer); err != nil && !errors.Is(err, machine.ErrStale) {
		a.log.Error("boot not answered", "machine", h.Name(), "error", err)
	}
}

// bootContent returns what a boot source holds, or why it holds nothing bootable.
func bootContent(h *rack.Host, s machine.Source) (name, why string) {
	switch s.Kind {
	case machine.Cd:
		if _, err := readAgentMedia(h); err != nil {
			if hasBootableCD(h) {
				return liveOS, ""
			}
			return "", err.Error()
		}
		return AgentOS, ""
	case machine.Hdd:
		m, err := h.Medium(s.Device)
		if err != nil {
			return "", err.Error()
		}
		what, ok, err := images.Bootable(m, m.Size())
		switch {
		case err != nil:
			return "", err.Error()
		case !ok:
			return "", what
		}
		return DiskOS, ""
	}
	return "", "nobody answers there"
}

// hasBootableCD reports whether a virtual CD holds a bootable medium. A live system
// is not run, so that its content does not matter.
func hasBootableCD(h *rack.Host) bool {
	for _, slot := range h.BMC().Slots {
		media, ok := h.Media(slot.ID)
		if !ok {
			continue
		}
		_, boots, err := images.BootableCD(media.File, media.Size)
		media.Close()
		if boots && err == nil {
			return true
		}
	}
	return false
}

// readAgentMedia reads the agent's configuration from the ISO in the virtual CD.
func readAgentMedia(h *rack.Host) (job.Media, error) {
	for _, slot := range h.BMC().Slots {
		media, ok := h.Media(slot.ID)
		if !ok {
			continue
		}
		defer media.Close()
		m, err := pxe.ReadISO(media.File, media.Size)
		if err != nil {
			return m, fmt.Errorf("virtual media: %w", err)
		}
		return m, nil
	}
	return job.Media{}, errors.New("no medium")
}

// runUntilStop runs do in a goroutine when agents may run. ctx ends when they are
// stopped.
func (a *agents) runUntilStop(do func(context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	a.group.Go(func() {
		select {
		case <-a.started:
			do(a.ctx)
		case <-a.ctx.Done():
		}
	})
}

// run starts the agent that a machine has booted.
func (a *agents) run(h *rack.Host, os machine.OS) {
	var from networkBoot
	var err error
	if overNetwork[os.Source.Kind] {
		from, err = a.loadNetworkBoot(h, os.Boot)
	} else {
		from.Media, err = readAgentMedia(h)
	}
	if err != nil {
		// The medium was there when the machine loaded it. Without it the agent
		// has lost its file system.
		a.log.Warn("agent lost its medium", "machine", h.Name(), "error", err)
		return
	}
	key, err := agent.LoadKey(a.keyFile(h, os.Boot))
	if err != nil {
		a.log.Error("agent without a key", "machine", h.Name(), "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || a.silent[h.Name()] {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	a.running[h.Name()] = &running{boot: os.Boot, stop: stop}
	a.group.Go(func() {
		defer stop()
		select {
		case <-a.started:
		case <-ctx.Done():
			return
		}
		err := agent.Run(ctx, agent.Config{
			Media: from.Media, Key: key, System: systemOf(h, os.Boot, from.Cmdline), Clock: labClock{a.clock},
			Log: agentLog(a.clock, a.log, h, os.Boot), Enter: a.clock.Enter, Turn: a.acquireTurn,
		})
		if err != nil {
			a.log.Error("agent ended", "machine", h.Name(), "error", err)
		}
	})
}

// acquireTurn waits until an agent may do a job, and returns what ends its turn.
func (a *agents) acquireTurn(ctx context.Context) (done func()) {
	select {
	case a.busy <- struct{}{}:
		return func() { <-a.busy }
	case <-ctx.Done():
		return func() {}
	}
}

// SilenceAgent keeps a host's agent from starting at later boots, or lets it start
// again. Its operating system boots all the same.
func (l *Lab) SilenceAgent(host string, mute bool) {
	l.agents.mu.Lock()
	defer l.agents.mu.Unlock()
	l.agents.silent[host] = mute
}

// stopAgent ends the agent of a boot if it runs. Its drives are detached already.
func (a *agents) stopAgent(h *rack.Host, boot uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.running[h.Name()]; r != nil && r.boot == boot {
		r.stop()
		delete(a.running, h.Name())
	}
}

// attachments are the kinds of disks that the kernel shows, and the prefixes of
// their WWNs, by protocol.
var attachments = map[storage.Protocol]struct {
	kind systest.Kind
	wwn  string
}{
	storage.SATA: {systest.SATA, "0x"}, storage.SAS: {systest.SAS, "0x"}, storage.NVMe: {systest.NVMe, "eui."},
}

// systemOf returns the operating system that the agent of one boot sees: the
// machine's identity as the kernel would show it, and its drives.
func systemOf(h *rack.Host, boot uint64, cmdline string) sys.System {
	v := h.Machine()
	p, id := v.Profile, v.Identity
	m := systest.Machine{
		Hostname: id.Name, Arch: p.Processors.Arch,
		Vendor: p.Manufacturer, Product: p.Model, Serial: id.Serial, UUID: id.UUID,
		BIOSVendor: p.BIOS.Vendor, BIOSVersion: p.BIOS.Version, BIOSDate: p.BIOS.Date,
		CPU: systest.CPU{
			Vendor: p.Processors.Vendor, Sockets: p.Processors.Sockets, Cores: p.Processors.Cores,
			Model: p.Processors.Model, MHz: float64(p.Processors.MHz),
			Threads: p.Processors.Sockets * p.Processors.Threads, Flags: p.Processors.Flags,
		},
		RAMMiB: p.MemoryMiB, VirtualCD: "Virtual CD", Cmdline: cmdline,
	}
	for _, n := range id.NICs {
		m.NICs = append(m.NICs, systest.NIC{
			Name: n.Name, MAC: n.MAC, PCI: n.PCIAddress, Vendor: pciID(n.PCIVendor), Device: pciID(n.PCIDevice),
			Mbps: n.SpeedMbps, Carrier: v.Cabling.Linked(n.ID), Frames: switchFrames(n),
		})
	}
	for _, d := range v.Storage.Devices() {
		disk := diskOf(v.Storage, d)
		disk.Open = func() (sys.Block, error) {
			medium, err := h.Attach(boot, d.ID)
			if err != nil {
				return nil, err
			}
			return block{medium}, nil
		}
		m.Disks = append(m.Disks, disk)
	}
	return systest.New(m)
}

// diskOf returns a drive or a volume as the kernel shows it. A volume has the vendor
// and model of its controller, and is rotational if any of its drives is.
func diskOf(v storage.View, d storage.Device) systest.Disk {
	if x := d.Drive; x != nil {
		return systest.Disk{
			Kind: attachments[x.Protocol].kind, Rotational: x.Media == storage.HDD, Size: x.Capacity,
			Vendor: x.Vendor, Model: x.Product, Serial: x.Serial, WWN: attachments[x.Protocol].wwn + x.WWN,
		}
	}
	c, _ := v.Controller(d.In)
	x := d.Volume
	turns := slices.ContainsFunc(c.Drives, func(d storage.DriveView) bool {
		return d.Media == storage.HDD && slices.Contains(d.Volumes, x.ID)
	})
	return systest.Disk{
		Kind: systest.Volume, Rotational: turns, Size: x.Size(),
		Vendor: c.Vendor, Model: c.Product, Serial: x.WWN, WWN: "0x" + x.WWN,
	}
}

// pciID parses an ID such as 0x8086; the lab has refused profiles with others.
func pciID(s string) uint16 {
	n, err := strconv.ParseUint(s, 0, 16)
	if err != nil {
		return 0
	}
	return uint16(n)
}

// block is a drive as sys.Block.
type block struct{ *rack.Disk }

// Zero implements sys.Block.
func (b block) Zero(off, n int64) error { return b.Discard(off, n) }

// Close implements sys.Block; the drive stays attached to the machine.
func (b block) Close() error { return nil }
