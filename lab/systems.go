package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/metalab-dev/metalab/agent/broker"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/guest/datasource"
	"github.com/metalab-dev/metalab/guest/debian"
	"github.com/metalab-dev/metalab/guest/sandbox"
)

// systemsDir has the mounts of systems in which commands run.
const systemsDir = "systems"

// lowersDir is the directory in it of the lower layers that the systems share. Theirs end with the number of a boot.
const lowersDir = "lowers"

// systems are the operating systems of servers that have booted from a disk or a live
// ISO. Their files are those that an image brings, and what the first boot and commands
// have changed, which is stored with the disk.
type systems struct {
	clock  *clock.Clock
	log    *slog.Logger
	dir    string
	lowers *sandbox.Lowers
	image  func() string // URL of the image that elemental-sim installs unless the instructions name one
	// realTime says that the lab's time is this machine's: a process may run an agent.
	realTime bool
	// networkSource returns the data source of a live system that was loaded over the network.
	networkSource func(*rack.Host, uint64) (cloudinit.Instance, error)
	turns         chan struct{}  // holds a token for each first boot that runs commands
	osReleases    map[int]string // by host: rackfile.Host.OSRelease
	firstBoots    map[int]string // by host: rackfile.Group.FirstBoot
	roots         imageRoots

	mu       sync.Mutex
	stopped  bool
	running  map[string]*system // by host
	failures map[string]Trouble // by host
	group    sync.WaitGroup
}

// system is the operating system of one boot.
type system struct {
	*sandbox.System
	host       *rack.Host
	os         machine.OS
	base       *base // counts when the files were used
	files      systemRoot
	broker     *broker.Broker // broker of the agents that run here
	configured chan struct{}  // closed when the data source was applied
	ctx        context.Context
	cancel     context.CancelFunc
	told       told
	steps      struct { // looks of the LCM agent
		sync.Mutex
		Steps
	}
}

// newSystems warns where limits, the result of sandbox.CheckLimits, is an error.
func newSystems(c *clock.Clock, log *slog.Logger, dir string, hosts []rackfile.Host, limits error) *systems {
	if limits != nil {
		log.Warn("the lab alone limits the commands of servers, and may be too late", "error", limits)
	}
	return &systems{clock: c, log: log, dir: dir, lowers: sandbox.NewLowers(filepath.Join(dir, lowersDir)), turns: make(chan struct{}, 2*runtime.NumCPU()), image: func() string { return "" }, osReleases: osReleases(hosts), firstBoots: firstBoots(hosts), running: map[string]*system{}, failures: map[string]Trouble{}}
}

// memoryStore stores the layer of a live system as long as it runs.
type memoryStore struct{ b []byte }

// Load implements sandbox.Store.
func (s *memoryStore) Load() ([]byte, error) { return s.b, nil }

// Save implements sandbox.Store.
func (s *memoryStore) Save(b []byte) error { s.b = b; return nil }

// start begins the operating system of a boot.
func (y *systems) start(h *rack.Host, os machine.OS) {
	var store sandbox.Store = &memoryStore{}
	var onDisk *diskStore
	if os.Name == DiskOS {
		d, err := h.Attach(os.Boot, os.Source.Device)
		if err != nil {
			y.log.Warn("a system has lost its disk", "machine", h.Name(), "error", err)
			return
		}
		onDisk = &diskStore{Disk: d}
		store = onDisk
	}
	console := consoleWriter{h, os.Boot}
	exit := func(restart bool) func() {
		return func() {
			defer y.clock.Enter()()
			if err := h.Apply(context.Background(), machine.Exit{Boot: os.Boot, Restart: restart}); err != nil && !errors.Is(err, machine.ErrStale) {
				y.log.Error("a system cannot leave", "machine", h.Name(), "error", err)
			}
		}
	}
	b, ofUser := y.baseOf(h, os)
	x := &system{host: h, os: os, base: b, configured: make(chan struct{})}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.files.describe("the lab's: " + debian.PrettyName(debian.Fields(string(b.root["etc/os-release"].Content))))
	var root func() *sandbox.Root
	if ofUser && onDisk != nil {
		y.rootOfImage(x, onDisk, b, console)
		root = func() *sandbox.Root {
			if i := x.files.find(); i != nil {
				return i.root
			}
			return nil
		}
	}
	x.System = sandbox.New(sandbox.Config{
		Base: b.tree, Root: root, Own: ownFiles(h, os), Store: store, Now: y.clock.Now, Boot: bootOf(h, os.Boot),
		Dir:    filepath.Join(y.dir, fmt.Sprintf("%s-%d", url.PathEscape(h.Name()), os.Boot)),
		Reboot: exit(true), PowerOff: exit(false),
		Lowers: y.lowers, Programs: []string{labAgent}, Sleep: y.clock.Sleep,
		After:    func(d time.Duration, do func()) func() bool { return y.clock.LazyFunc(d, do).Stop },
		Hardware: func() fs.FS { return systemOf(h, os.Boot, "").FS() },
		Run: func(ctx context.Context, unit string, args, env []string) error {
			return y.run(ctx, x, unit, args, env)
		},
		StandsFor: func(unit, program string) (bool, error) { return y.standsFor(x, unit, program) },
		Report:    func(line string) { _, _ = fmt.Fprintln(console, line) }, // the console drops what comes late
		Crashed:   func(cause error) { y.crash(x, cause) },
	})
	// One reboot of the system serves all agents, when none of them changes it.
	x.broker = broker.New(x.Host().Reboot, func(err error) { y.log.Error("a system does not reboot", "machine", h.Name(), "error", err) })
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.stopped {
		return
	}
	y.running[h.Name()] = x
	y.group.Go(func() {
		defer y.clock.Enter()()
		defer x.Guard()
		y.boot(x, console)
	})
}

// crash ends the system of a server that this process cannot run any further.
func (y *systems) crash(x *system, cause error) {
	y.log.Error("a system has crashed", "machine", x.host.Name(), "error", cause)
	if running := x.host.Machine().OS; running == nil || running.Boot != x.os.Boot {
		return
	}
	reason, _, _ := strings.Cut(cause.Error(), "\n")
	x.host.RecordCrash(cause.Error())
	if err := x.host.Apply(context.Background(), machine.Crash{Reason: reason}); err != nil && !errors.Is(err, machine.ErrPower) {
		y.log.Error("a system that has crashed goes on", "machine", x.host.Name(), "error", err)
	}
}

// bootOf identifies a boot of a host. Its ID is a UUID of the host's name and the boot's
// number (RFC 9562, §5.5), so that it outlives a restart of the lab.
func bootOf(h *rack.Host, boot uint64) sys.Boot {
	id := uuid.NewSHA1(uuid.NameSpaceDNS, fmt.Appendf(nil, "%s %d", h.Name(), boot))
	return sys.Boot{ID: id.String(), Time: h.Machine().Since}
}

// shutdown ends the services of a system and stores its files, while its disks are
// attached. It returns at once; a clock at max speed waits for it.
func (y *systems) shutdown(h *rack.Host, boot uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	x := y.running[h.Name()]
	if x == nil || x.os.Boot != boot {
		return
	}
	leave := y.clock.Enter()
	x.broker.Close() // a reboot that an agent has queued must not switch the server on again
	y.group.Go(func() {
		defer leave()
		defer x.Guard()
		if err := x.Shutdown(); err != nil && !errors.Is(err, rack.ErrDown) {
			y.log.Error("a system has not stored its files", "machine", h.Name(), "error", err)
		}
	})
}

// stop ends the system of a boot. Its disks are detached already.
func (y *systems) stop(h *rack.Host, boot uint64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	x := y.running[h.Name()]
	if x == nil || x.os.Boot != boot {
		return
	}
	delete(y.running, h.Name())
	x.broker.Close()
	x.cancel()
	y.group.Go(func() { y.close(x) })
}

func (y *systems) close(x *system) {
	if err := x.Close(); err != nil {
		y.log.Error("a system has not ended", "machine", x.host.Name(), "error", err)
	}
}

// stopAll ends all systems in order, and returns when their processes have ended.
func (y *systems) stopAll() {
	y.mu.Lock()
	y.stopped = true
	for _, x := range y.running {
		x.broker.Close()
		x.cancel()
		y.group.Go(func() {
			if err := x.Shutdown(); err != nil {
				y.log.Error("a system has not stored its files", "machine", x.host.Name(), "error", err)
			}
			y.close(x)
		})
	}
	clear(y.running)
	y.mu.Unlock()
	y.group.Wait()
	y.roots.close()
	if err := errors.Join(y.lowers.Close(), os.RemoveAll(y.dir)); err != nil {
		y.log.Error("mounts of systems are left", "error", err)
	}
}

// instanceFile has the ID of the instance that the data source was applied for
// (cloud-init, "Boot stages": per-instance modules).
const instanceFile = "var/lib/cloud/data/instance-id"

// boot does what a system does after it has started: it applies its data source if the
// instance is a new one, runs the commands of the user data, and starts the units that are
// enabled.
func (y *systems) boot(x *system, console io.Writer) {
	once := sync.OnceFunc(func() { close(x.configured) })
	defer once()
	fail := func(what string, err error) {
		if !errors.Is(err, rack.ErrDown) && !errors.Is(err, sandbox.ErrClosed) {
			_, _ = fmt.Fprintf(console, "%s: %v\n", what, err) // the console drops what comes late
			x.host.RecordIgnored(fmt.Sprintf("%s: %v", what, err))
		}
	}
	i, from, err := y.source(x)
	if (err == nil || errors.Is(err, cloudinit.ErrNoSource)) && y.bootsByImage(x, console) {
		y.bootByImage(x, i, console, once, fail)
		return
	}
	var result cloudinit.Result
	first := false
	switch {
	case errors.Is(err, cloudinit.ErrNoSource):
	case err != nil:
		fail("cloud-init: no data source", err)
	default:
		b, rerr := x.ReadFile(instanceFile)
		first = strings.TrimSpace(string(b)) != i.ID
		root := maps.Clone(x.base.root)
		i.NICs, i.Device = cloudinit.NICs(systemOf(x.host, x.os.Boot, "").FS()), from
		result = cloudinit.Configure(i, root)
		if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			fail("cloud-init", rerr)
			return
		}
		if first {
			files := treeOf(root, x.base.root)
			if _, given := files[machineIDFile]; rerr != nil && !given { // of a new installation
				files[machineIDFile] = machineID(x.host, x.os, fmt.Sprint(x.os.Boot))
			}
			if err := y.putWhenThereIsRoom(x, files, fail); err != nil {
				fail("cloud-init", err)
				return
			}
			for _, line := range result.Lines(i.Source, from) {
				_, _ = fmt.Fprintln(console, line) // the console drops what comes late
			}
			for _, text := range result.Ignored {
				x.host.RecordIgnored(text)
			}
		}
	}
	once()
	// The order is that of cloud-init's stages: bootcmd early, runcmd after the units.
	out := &outputLog{console: console}
	if !y.runCommands(x, result, bootCommands(result), out) {
		return
	}
	if err := x.Boot(); err != nil {
		fail("systemd", err)
	}
	if !y.runCommands(x, result, lastCommands(result, first), out) || out.text.Len() == 0 {
		return
	}
	if err := x.Put(sandbox.Tree{outputFile: sandbox.File(0o640, out.text.String())}); err != nil {
		fail("cloud-init", err)
	}
}

// fullDisk is the time between two attempts to write a first boot to a disk of this machine that is
// full. It is real time, as the disk is.
const fullDisk = 2 * time.Second

// putWhenThereIsRoom writes the files of a first boot. While the machine's disk is full it waits,
// and the lab's clock with it: a server whose first boot is lost would have no name, user or agent.
func (y *systems) putWhenThereIsRoom(x *system, files sandbox.Tree, fail func(string, error)) error {
	err := x.Put(files)
	if errors.Is(err, syscall.ENOSPC) {
		fail("cloud-init: waiting for room", err)
	}
	for errors.Is(err, syscall.ENOSPC) {
		select {
		case <-x.ctx.Done():
			return sandbox.ErrClosed
		case <-time.After(fullDisk):
		}
		err = x.Put(files)
	}
	return err
}

// source returns the data source of a system, and the device or directory that has it. That of a live system is the medium
// that it has booted, or what it has loaded over the network, if that is one; its host name is the
// server's, as DHCP would give it.
func (y *systems) source(x *system) (cloudinit.Instance, string, error) {
	if x.os.Name == liveOS {
		from, read := "/dev/sr0", func() (cloudinit.Instance, error) { return mediumSource(x.host) }
		if overNetwork[x.os.Source.Kind] {
			from, read = netboot.SeedDir, func() (cloudinit.Instance, error) { return y.networkSource(x.host, x.os.Boot) }
		}
		if i, err := read(); !errors.Is(err, cloudinit.ErrNoSource) {
			if i.Hostname == "" {
				i.Hostname = x.host.Name()
			}
			return i, from, err
		}
	}
	i, device, err := datasource.Find(systemOf(x.host, x.os.Boot, ""))
	return i, "/dev/" + device, err
}

// outputFile has the output of user data (cloud-init, "Log files").
const outputFile = "var/log/cloud-init-output.log"

// bootCommands returns the boot hooks and bootcmd, which run at every boot.
func bootCommands(r cloudinit.Result) (out [][]string) {
	for _, name := range r.Hooks {
		out = append(out, slices.Concat([]string{"/usr/bin/env"}, r.HookEnv, []string{name}))
	}
	for _, line := range r.Boot {
		out = append(out, []string{"/bin/sh", "-c", line})
	}
	return out
}

// lastCommands returns the scripts of the user data that run after the units: at the first boot all
// of them with runcmd, else those of every boot.
func lastCommands(r cloudinit.Result, first bool) (out [][]string) {
	if first {
		out = firstCommands(r)
	}
	for _, name := range r.BootScripts {
		out = append(out, []string{name})
	}
	return out
}

// firstCommands returns the scripts of the user data, and runcmd.
func firstCommands(r cloudinit.Result) (out [][]string) {
	for _, name := range r.Scripts {
		if inProcess := inProcess(r.Run); name == cloudinit.RunScript && inProcess != nil {
			out = append(out, inProcess...)
			continue
		}
		out = append(out, []string{name})
	}
	return out
}

// runCommands runs commands of the user data. It returns false when the system has ended
// meanwhile.
func (y *systems) runCommands(x *system, r cloudinit.Result, commands [][]string, out *outputLog) bool {
	if len(commands) == 0 {
		return true
	}
	select {
	case y.turns <- struct{}{}:
		defer func() { <-y.turns }()
	case <-x.ctx.Done():
		return false
	}
	for _, c := range commands {
		code, err := x.Exec(x.ctx, sandbox.Command{Args: c, Dir: "/", Stdout: out, Stderr: out})
		out.flush()
		switch {
		case errors.Is(err, sandbox.ErrClosed), errors.Is(err, rack.ErrDown):
			return false
		case err != nil:
			_, _ = fmt.Fprintf(out.console, "cloud-init: %s: %v\n", c[0], err) // the console drops what comes late
		case code == sandbox.CodeCannotRun:
			_, _ = fmt.Fprintf(out.console, "cloud-init: not executed: %s\n", r.Commands())
			return true
		case code != 0:
			_, _ = fmt.Fprintf(out.console, "cloud-init: %s ended with code %d\n", strings.Join(c, " "), code)
		}
	}
	return true
}

// inProcess returns the commands of runcmd if all of them are programs of the sandbox,
// which need no process: with "systemctl enable" alone a thousand servers boot without
// any. Else it returns nil, and they run as the script that they are.
func inProcess(lines []string) (out [][]string) {
	for _, line := range lines {
		words, ok := sandbox.BuiltIn(line)
		if !ok {
			return nil
		}
		out = append(out, words)
	}
	return out
}

// outputLog shows the output of user data on the console, and stores it.
type outputLog struct {
	mu      sync.Mutex
	console io.Writer
	line    []byte
	text    strings.Builder
}

// maxOutput is how many bytes of the output of user data are stored.
const maxOutput = 256 << 10

// maxLine is how many bytes of a line are shown at once: a command may never end it.
const maxLine = 4096

// Write implements io.Writer.
func (o *outputLog) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len()+len(p) <= maxOutput {
		o.text.Write(p)
	}
	o.line = append(o.line, p...)
	for {
		i := slices.Index(o.line, '\n')
		if len(o.line) >= maxLine && (i < 0 || i >= maxLine) {
			i = maxLine - 1
		}
		if i < 0 {
			return len(p), nil
		}
		_, _ = o.console.Write(slices.Clone(o.line[:i+1])) // the console drops what comes late
		o.line = o.line[i+1:]
	}
}

func (o *outputLog) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		_, _ = o.console.Write(append(o.line, '\n')) // the console drops what comes late
		o.line = nil
	}
}
