package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/registry"
)

// sharedServers is how many servers a shared lab has. A scenario never gets a
// server that another has used, with its disks and its BMC.
const sharedServers = 64

// maxFreeLabs is how many free labs are kept for later scenarios. Each has a Kubernetes API,
// which takes some 120 MB and 2 % of a core while idle, and a start takes 3 s of a core:
// feature files need one kind, or two in turn.
const maxFreeLabs = 4

// resetTimeout is how long, in real time, testLab.reset may take.
const resetTimeout = 20 * time.Second

// labKind identifies a kind of lab: scenarios that need different kinds share no lab.
type labKind struct {
	profile         string
	preprovisioning bool          // the controllers build pre-provisioning images
	rack            *rackfile.Lab // definition of a lab for one scenario alone; else nil
	models          *rack.Files   // profiles and registries of the rack, beside the built-in ones; else nil
	allModels       bool          // the lab has servers of every profile
	with            string        // families of kinds beside those of hosts, with commas; "" is none
	vendor          bool          // the controllers read the index of a vendor of host OS modules
	alone           bool          // the lab is for one scenario alone: its first server is node-0
}

// has reports whether the lab has a family of kinds.
func (k labKind) has(family string) bool { return slices.Contains(strings.Split(k.with, ","), family) }

// serversPerModel is how many servers of each model a lab of all models has.
const serversPerModel = 4

// rackOfAllModels returns the definition of a lab of all models.
func rackOfAllModels() (*rackfile.Lab, error) {
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil {
		return nil, err
	}
	r := rackfile.Default(serversPerModel)
	group := r.Hosts[0]
	r.Hosts = nil
	for _, file := range files {
		group.Profile = strings.TrimSuffix(path.Base(file), ".yaml")
		group.NamePrefix = group.Profile
		r.Hosts = append(r.Hosts, group)
	}
	return &r, nil
}

// pollInterval is how often, in real time, what a step waits for is looked at.
const pollInterval = 5 * time.Millisecond

// testLab is a running lab with its clients and its servers.
type testLab struct {
	kind      labKind
	dir       string
	log       *os.File // what the lab logs, at all levels: it has no name
	lab       *lab.Lab
	kube      client.WithWatch
	stop      context.CancelFunc
	downloads downloadGate
	vendor    *moduleServer // serves the vendor's index; nil when there is none
	servers   []control.Host
	used      int

	replaced map[string]bool // bays of the server whose drives were replaced
	// registered means that servers have registered themselves: their objects stay until the
	// servers are reset, so that no other scenario gets the lab.
	registered bool
}

func openLab(ctx context.Context, k labKind, servers int) (_ *testLab, err error) {
	b := &testLab{kind: k}
	if b.dir, err = os.MkdirTemp("", "metalab-feature-"); err != nil {
		return nil, err
	}
	if b.log, err = os.CreateTemp("", "metalab-feature-log-"); err == nil {
		err = os.Remove(b.log.Name()) // it ends with this process
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx)) // until close
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	settings := lab.Settings{Hosts: servers, Speed: "max", Kube: true, Profile: k.profile}
	if k.with != "" {
		settings.With = strings.Split(k.with, ",")
	}
	if k.vendor {
		if b.vendor, err = startModuleServer(); err != nil {
			return nil, err
		}
		settings.ModuleIndex = b.vendor.url + vendorsIndex
	}
	defined := k.rack
	if k.allModels {
		if defined, err = rackOfAllModels(); err != nil {
			return nil, err
		}
	}
	if defined != nil {
		settings.Define(*defined)
		settings.Speed = "max"
	}
	if k.models != nil {
		settings.AddModels(*k.models)
	}
	b.lab, err = lab.Start(ctx, lab.Config{
		Dir:      b.dir,
		Settings: settings,
		Listen:   lab.AnyPort,
		Log: slog.New(slog.NewMultiHandler(
			slog.NewTextHandler(logOutput(), &slog.HandlerOptions{Level: slog.LevelWarn}),
			slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}),
		)),
		Images:                    b.downloads.wrap,
		BuildPreprovisioningImage: k.preprovisioning,
	})
	if err != nil {
		return nil, err
	}
	b.servers = b.lab.Hosts()
	b.kube, err = b.lab.Kubernetes()
	return b, err
}

// logOutput returns where the lab's warnings go: to stderr when METALAB_LOG is set.
func logOutput() io.Writer {
	if os.Getenv("METALAB_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}

// openMatchingLab starts a lab of a kind.
func openMatchingLab(ctx context.Context, k labKind, servers int) (*testLab, error) {
	b, err := openLab(ctx, k, servers)
	if err == nil && !b.matches(k) {
		return nil, errors.Join(fmt.Errorf("there is no model %s", k.profile), b.close())
	}
	return b, err
}

// matches reports whether the lab is of a kind. In a lab of all models it moves an
// unused server of the profile to the front.
func (b *testLab) matches(k labKind) bool {
	if !k.allModels || !b.kind.allModels {
		return b.kind == k
	}
	for i := b.used; i < len(b.servers); i++ {
		if b.servers[i].Profile == k.profile {
			b.servers[i], b.servers[b.used] = b.servers[b.used], b.servers[i]
			return true
		}
	}
	return false
}

// assign returns the next unused servers.
func (b *testLab) assign(servers int) []control.Host {
	b.used += servers
	return b.servers[b.used-servers : b.used]
}

func (b *testLab) close() error {
	b.downloads.release()
	var err error
	if b.lab != nil {
		if r, _ := b.lab.Registry(); r != nil {
			r.SetFault(registry.None) // else requests wait
		}
		err = b.lab.Stop()
	}
	b.stop()
	if b.vendor != nil {
		b.vendor.close()
	}
	return errors.Join(err, b.log.Close(), os.RemoveAll(b.dir))
}

// Labs are labs that scenarios share one after the other: most scenarios take less
// time than the start of a lab. Scenarios that run at the same time have different
// labs, since each may advance the clock and kill the controllers.
type Labs struct {
	// Recordings is a directory that gets a recording of each scenario that fails; "" for none.
	Recordings string
	// Snapshots adds a snapshot of the lab at its end to each recording.
	Snapshots bool
	// Pages writes a page of each recording beside it, which opens in a browser from the file.
	Pages bool

	// Limit is how long, in the lab's time, a step waits for its effect; 0 means DefaultLimit.
	Limit time.Duration

	// ExpectFailures keeps the lab of a scenario that has failed, as that of any other: its last
	// step claims something false.
	ExpectFailures bool

	mu       sync.Mutex
	free     []*testLab // the one that was released last is last
	recorded []Recorded
}

// Recorded is a recording of a scenario that has failed.
type Recorded struct {
	File string // as the error of the scenario names it, in View
	View string // the command in that error
	Page string // file name of its page; "" for none
	// Fragment, behind a link to the page, leads to the server of the scenario when it failed.
	Fragment string
}

// Recorded returns what was recorded.
func (l *Labs) Recorded() []Recorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.recorded)
}

// Register binds all steps to a scenario, which acquires a free lab or starts one.
func (l *Labs) Register(sc *godog.ScenarioContext) *Scenario {
	return bind(sc, &scenario{labs: l, recorder: new(recorder)})
}

// Close stops the labs. No scenario may be running.
func (l *Labs) Close() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.free {
		err = errors.Join(err, b.close())
	}
	l.free = nil
	return err
}

func (l *Labs) acquire(ctx context.Context, k labKind, servers int) (*testLab, error) {
	if b := l.find(k, servers); b != nil {
		return b, nil
	}
	if k.rack == nil {
		servers = max(servers, sharedServers)
	}
	return openMatchingLab(ctx, k, servers)
}

func (l *Labs) find(k labKind, servers int) *testLab {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, b := range slices.Backward(l.free) {
		if len(b.servers)-b.used >= servers && b.matches(k) {
			l.free = slices.Delete(l.free, i, i+1)
			return b
		}
	}
	return nil
}

// release makes a lab free for other scenarios, and closes the lab that has been free for the
// longest when there are more than maxFreeLabs. It closes the lab of a scenario that has failed,
// one that cannot be reset, and one that no other scenario can have.
func (l *Labs) release(ctx context.Context, b *testLab, servers []control.Host, well bool) error {
	if !well && !l.ExpectFailures || b.registered || b.used >= len(b.servers) || b.kind.alone || b.kind.rack != nil || b.kind.models != nil {
		return b.close()
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	if err := b.reset(ctx, servers); err != nil {
		_, _ = fmt.Fprintln(logOutput(), "features: a lab does not forget its scenario:", err)
		return b.close()
	}
	if oldest := l.keep(b); oldest != nil {
		return oldest.close()
	}
	return nil
}

// keep adds a free lab, and returns the one that has to be closed for it, if any.
func (l *Labs) keep(b *testLab) (oldest *testLab) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free = append(l.free, b); len(l.free) > maxFreeLabs {
		oldest = l.free[0]
		l.free = slices.Delete(l.free, 0, 1)
	}
	return oldest
}

// reset removes a scenario's faults and objects, starts the controllers if they
// were killed, and switches the scenario's servers off.
func (b *testLab) reset(ctx context.Context, servers []control.Host) error {
	b.downloads.release()
	faults, err := b.lab.Control().Faults(ctx)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if err := b.lab.Control().RemoveFault(ctx, f.ID); err != nil {
			return err
		}
	}
	if !b.lab.ControllersRunning() {
		if err := b.lab.StartControllers(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	if b.kind.has(config.HOC) {
		if err := b.deleteInventories(ctx); err != nil {
			return err
		}
	}
	if err := b.deleteHosts(ctx); err != nil {
		return err
	}
	if b.vendor != nil {
		b.vendor.clear()
	}
	if b.kind.has(config.Elemental) {
		if err := b.deleteElemental(ctx); err != nil {
			return err
		}
	}
	if b.kind.has(config.HOC) {
		if err := errors.Join(b.deleteDay2(ctx), b.deleteNetworks(ctx), b.deleteAgentAccounts(ctx), b.deleteNodes(ctx), b.deleteRegisteredAgain(ctx), b.deleteCharts(ctx)); err != nil {
			return err
		}
	}
	if b.kind.has(config.MachineConfig) {
		// Images are deleted once no node has them.
		if err := errors.Join(b.deleteMachineConfig(ctx), b.deleteNodes(ctx)); err != nil {
			return err
		}
		if err := b.deleteImageBuilds(ctx); err != nil {
			return err
		}
	}
	for _, s := range servers {
		h, ok := b.lab.Rack().Host(s.Name)
		if ok && h.Machine().Power != machine.PowerOff {
			if _, err := b.lab.Control().Power(ctx, s.Name, string(machine.ForceOff)); err != nil {
				return err
			}
		}
	}
	for _, left := range []client.Object{&metal3.BMCEventSubscription{}, &corev1.Secret{}, &corev1.Event{}} {
		if err := b.kube.DeleteAllOf(ctx, left, client.InNamespace(lab.Namespace)); err != nil {
			return err
		}
	}
	return nil
}

// deleteHosts deletes all BareMetalHosts. It detaches them first, so that they are
// not deprovisioned.
func (b *testLab) deleteHosts(ctx context.Context) error {
	asked := map[string]bool{}
	return wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var l metal3.BareMetalHostList
		if err := b.kube.List(ctx, &l); err != nil {
			return false, err
		}
		for i := range l.Items {
			h := &l.Items[i]
			if asked[h.Name] {
				continue
			}
			before := h.DeepCopy()
			h.Annotations = map[string]string{metal3.DetachedAnnotation: `{"force":true}`}
			err := b.kube.Patch(ctx, h, client.MergeFrom(before))
			if err == nil {
				err = b.kube.Delete(ctx, h)
			}
			if client.IgnoreNotFound(err) != nil {
				return false, err
			}
			asked[h.Name] = true
		}
		return len(l.Items) == 0, nil
	})
}
