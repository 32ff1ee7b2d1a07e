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
	"strings"
	"sync"
	"time"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/lab/control"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/fixtures"
	"github.com/metalab-dev/metalab/scenarios/world"
)

// sharedServers is how many servers a shared lab has. A scenario never gets a
// server that another has used, with its disks and its BMC.
const sharedServers = 64

// resetTimeout is how long, in real time, testLab.reset may take.
const resetTimeout = 20 * time.Second

// labKind identifies a kind of lab: scenarios that need different kinds share no lab.
type labKind struct {
	profile         string
	preprovisioning bool       // the controllers build pre-provisioning images
	rack            *rack.Lab  // definition of a lab for one scenario alone; else nil
	models          *lab.Files // of the rack, beside the built-in ones; else nil
	allModels       bool       // the lab has servers of every profile
	with            string     // family of kinds beside those of hosts; "" is none
	vendor          bool       // the controllers read the index of a vendor of host OS modules
}

// serversPerModel is how many servers of each model a lab of all models has.
const serversPerModel = 4

// rackOfAllModels returns the definition of a lab of all models.
func rackOfAllModels() (*rack.Lab, error) {
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil {
		return nil, err
	}
	r := rack.Default(serversPerModel)
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
	world     *world.World
	kube      client.WithWatch
	stop      context.CancelFunc
	downloads downloadGate
	vendor    *moduleServer // of the vendor's index; nil when there is none
	servers   []control.Host
	used      int

	replaced map[string]bool // bays of the server whose drives were replaced
}

func openLab(ctx context.Context, k labKind, servers int) (_ *testLab, err error) {
	b := &testLab{kind: k}
	if b.dir, err = os.MkdirTemp("", "metalab-feature-"); err != nil {
		return nil, err
	}
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx)) // until close
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	settings := world.Settings{Hosts: servers, Speed: "max", Kube: true, Profile: k.profile}
	if k.with != "" {
		settings.With = []string{k.with}
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
	b.world, err = world.Start(ctx, world.Config{
		Dir:                       b.dir,
		Settings:                  settings,
		Listen:                    world.AnyPort,
		Log:                       slog.New(slog.NewTextHandler(logOutput(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Images:                    b.downloads.wrap,
		BuildPreprovisioningImage: k.preprovisioning,
	})
	if err != nil {
		return nil, err
	}
	b.servers = b.world.Hosts()
	b.kube, err = b.world.Kubernetes()
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
	if b.world != nil {
		err = b.world.Stop()
	}
	b.stop()
	if b.vendor != nil {
		b.vendor.close()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// Labs are labs that scenarios share one after the other: most scenarios take less
// time than the start of a lab. Scenarios that run at the same time have different
// labs, since each may advance the clock and kill the controllers.
type Labs struct {
	mu   sync.Mutex
	free []*testLab
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
	for i, b := range l.free {
		if len(b.servers)-b.used >= servers && b.matches(k) {
			l.free = append(l.free[:i:i], l.free[i+1:]...)
			return b
		}
	}
	return nil
}

// release makes a lab free for other scenarios. It closes the lab of a scenario
// that has failed, and one that cannot be reset.
func (l *Labs) release(ctx context.Context, b *testLab, servers []control.Host, well bool) error {
	if !well {
		return b.close()
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	if err := b.reset(ctx, servers); err != nil {
		_, _ = fmt.Fprintln(logOutput(), "features: a lab does not forget its scenario:", err)
		return b.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, b)
	return nil
}

// reset removes a scenario's faults and objects, starts the controllers if they
// were killed, and switches the scenario's servers off.
func (b *testLab) reset(ctx context.Context, servers []control.Host) error {
	b.downloads.release()
	faults, err := b.world.Control().Faults(ctx)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if err := b.world.Control().RemoveFault(ctx, f.ID); err != nil {
			return err
		}
	}
	if !b.world.ControllersRunning() {
		if err := b.world.StartControllers(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	if b.kind.with != "" {
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
	if b.kind.with != "" {
		if err := errors.Join(b.deleteDay2(ctx), b.deleteNetworks(ctx), b.deleteAgentAccounts(ctx), b.deleteNodes(ctx), b.deleteCharts(ctx)); err != nil {
			return err
		}
	}
	for _, s := range servers {
		h, ok := b.world.Lab().Host(s.Name)
		if ok && h.Machine().Power != machine.PowerOff {
			if _, err := b.world.Control().Power(ctx, s.Name, string(machine.ForceOff)); err != nil {
				return err
			}
		}
	}
	for _, left := range []client.Object{&metal3.BMCEventSubscription{}, &corev1.Secret{}, &corev1.Event{}} {
		if err := b.kube.DeleteAllOf(ctx, left, client.InNamespace(world.Namespace)); err != nil {
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
