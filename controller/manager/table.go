package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/metal3/dataimage"
	"github.com/metalab-dev/metalab/controller/metal3/firmware"
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/metal3/raid"
	"github.com/metalab-dev/metalab/controller/metal3/subscription"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/webhook"
)

// controller is a controller that can be selected by name.
type controller struct {
	name   string
	family string // whose kinds it needs: see config.Families; "" are those of hosts
	add    func(context.Context, *Set) error
}

// controllers are all controllers, in the order in which they are added.
var controllers = []controller{
	{"host", "", addHosts},
	{"dataimage", "", addDataImages},
	{"subscription", "", addSubscriptions},
	{"preprovisioningimage", "", addPreprovisioning},
	{"hostos", "hoc", addHostOS},
	{"provider", "hoc", addProvider},
	{"lcm", "hoc", addLCM},
	{helmController, "hoc", addHelm},
	{machineConfigController, "machineconfig", addMachineConfig},
	{"elemental", "elemental", addElemental},
}

// Names returns the names of all controllers.
func Names() []string {
	var out []string
	for _, c := range controllers {
		out = append(out, c.name)
	}
	return out
}

// NamesOf returns the names of the controllers of hosts and of families.
func NamesOf(families ...string) []string {
	var out []string
	for _, c := range controllers {
		if c.family == "" || slices.Contains(families, c.family) {
			out = append(out, c.name)
		}
	}
	return out
}

// Check returns an error when one of the names is not a controller's, or when names is
// empty but not nil.
func Check(names []string) error {
	_, err := selectControllers(names)
	return err
}

// selectControllers returns the controllers with these names, and those of hosts when names
// is nil.
func selectControllers(names []string) ([]controller, error) {
	if names == nil {
		names = NamesOf()
	}
	var selected []controller
	for _, c := range controllers {
		if slices.Contains(names, c.name) {
			selected = append(selected, c)
		}
	}
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("there is no controller %q: use some of %s", name, strings.Join(Names(), ", "))
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("no controller is selected: use some of %s", strings.Join(Names(), ", "))
	}
	return selected, nil
}

// addHosts adds the controllers of BareMetalHosts and of their firmware, and the
// servers for agents and BMCs.
func addHosts(ctx context.Context, s *Set) error {
	c := &s.cfg
	var hosts *host.Reconciler // set before any agent can come up
	agents, err := inband.New(inband.Config{
		Key: c.Identity.Key, CA: c.Identity.CA, URL: c.Agents.URL,
		Clock: c.Clock, Enter: c.Enter, Changed: func(uid string) { hosts.Wake(uid) },
	})
	if err != nil {
		return err
	}
	boot := netboot.Config{
		Key: c.Identity.Key, URL: c.Media.URL, Secure: c.Secure.URL, Media: agents.Media, Image: c.Image, Public: preprovisioned, Enter: c.Enter,
	}
	if c.Network != nil {
		boot.Net, boot.OnDHCP = &c.Network.Network, c.Network.OnDHCP
	}
	media, err := netboot.New(boot)
	if err != nil {
		return err
	}
	parts, err := firmware.New(firmware.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Clock: c.Clock, Enter: c.Enter, ClientClock: c.ClientClock, Queues: c.Queues, Workers: c.Workers,
		BMC:     func(ctx context.Context, h *metal3.BareMetalHost) (bmc.Client, error) { return hosts.Connect(ctx, h) },
		Changed: func(uid string) { hosts.Wake(uid) },
	})
	if err != nil {
		return err
	}
	hosts, err = host.New(host.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), BMCs: c.BMCs, Inband: agents, Boot: media,
		Clock: c.Clock, Chance: c.Chance, RootCAs: c.RootCAs, Enter: c.Enter, ClientClock: c.ClientClock, Queues: c.Queues, Workers: c.Workers, Limit: c.Limit, Metrics: c.registry(), Traces: c.Traces,
		BuildPreprovisioningImage: c.BuildPreprovisioningImage,
		Parts:                     []host.Part{&raid.Part{Clock: c.Clock}, parts.Settings(), parts.Components()}, // in the order of B-52
	})
	if err != nil {
		return err
	}
	s.hosts, s.media = hosts, media
	// The API server calls the webhook at the agents' server, which speaks TLS.
	s.hooks = http.NewServeMux()
	s.hooks.Handle("/", agents)
	s.addHook(webhook.Hosts, webhook.Handler(), c.Namespaces...)
	return errors.Join(
		hosts.Setup(ctx, s.mgr),
		parts.Setup(s.mgr),
		s.serveAgents(s.hooks),
		s.serve("media", c.Media, media, nil),
		s.serveSecure(media),
		s.serveNetwork(media),
	)
}

// addHook serves a webhook beside the agents, and registers it once this process leads: until
// then it is the leader's.
func (s *Set) addHook(h webhook.Hook, handler http.Handler, namespaces ...string) {
	s.hooks.Handle(h.Path, handler)
	s.onLead = append(s.onLead, func(ctx context.Context) error {
		return webhook.Register(ctx, s.mgr.GetClient(), h, s.cfg.Agents.URL, s.cfg.Identity.CA, namespaces...)
	})
}

// addDataImages adds the controller of DataImages.
func addDataImages(_ context.Context, s *Set) error {
	images, err := dataimage.New(dataimage.Config{
		Client: s.mgr.GetClient(), Work: s.cfg.work(),
	})
	if err != nil {
		return err
	}
	return images.Setup(s.mgr)
}

// addSubscriptions adds the controller of BMCEventSubscriptions.
func addSubscriptions(ctx context.Context, s *Set) error {
	if s.hosts == nil {
		return errors.New("it connects to BMCs through the controller host: select host, too")
	}
	events, err := subscription.New(subscription.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Connect: s.hosts.Connect, Clock: s.cfg.Clock, Enter: s.cfg.Enter, ClientClock: s.cfg.ClientClock, Queues: s.cfg.Queues,
	})
	if err != nil {
		return err
	}
	return events.Setup(ctx, s.mgr)
}

// lead runs the onLead functions. The manager calls it once this process leads.
func (s *Set) lead(ctx context.Context) error {
	for _, f := range s.onLead {
		if err := f(ctx); err != nil {
			return err
		}
	}
	close(s.leading)
	return nil
}

// ready answers the readiness probe.
func (s *Set) ready(*http.Request) error {
	if !s.synced.Load() {
		return errors.New("the cache of the API's objects is not filled yet")
	}
	return nil
}
