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
	"github.com/metalab-dev/metalab/controller/dataimage"
	"github.com/metalab-dev/metalab/controller/firmware"
	"github.com/metalab-dev/metalab/controller/host"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/controller/raid"
	"github.com/metalab-dev/metalab/controller/subscription"
	"github.com/metalab-dev/metalab/controller/webhook"
)

// kind is a controller that can be asked for by name.
type kind struct {
	name string
	add  func(context.Context, *Set) error
}

// kinds are all of them, in the order in which they are added.
var kinds = []kind{
	{"host", addHosts},
	{"dataimage", addDataImages},
	{"subscription", addSubscriptions},
	{"preprovisioningimage", addPreprovisioning},
}

// Names are the names of all controllers.
func Names() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.name)
	}
	return out
}

// Check tells which of the names are of no controller.
func Check(names []string) error {
	_, err := choose(names)
	return err
}

// choose finds the controllers of these names; of none, all.
func choose(names []string) ([]kind, error) {
	if names == nil {
		return kinds, nil
	}
	var chosen []kind
	for _, k := range kinds {
		if slices.Contains(names, k.name) {
			chosen = append(chosen, k)
		}
	}
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("manager: there is no controller %q: use some of %s", name, strings.Join(Names(), ", "))
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("manager: no controller is asked for: use some of %s", strings.Join(Names(), ", "))
	}
	return chosen, nil
}

// addHosts adds the controller of BareMetalHosts, with the servers that their
// agents and BMCs reach.
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
		Key: c.Identity.Key, URL: c.Media.URL, Secure: c.Secure.URL, Media: agents.Media, Image: c.Image, Enter: c.Enter,
	}
	if c.Network != nil {
		boot.Net, boot.Told = &c.Network.Network, c.Network.Told
	}
	media, err := netboot.New(boot)
	if err != nil {
		return err
	}
	parts, err := firmware.New(firmware.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Clock: c.Clock, Enter: c.Enter, Workers: c.Workers,
		BMC:     func(ctx context.Context, h *metal3.BareMetalHost) (bmc.Client, error) { return hosts.Connect(ctx, h) },
		Changed: func(uid string) { hosts.Wake(uid) },
	})
	if err != nil {
		return err
	}
	hosts, err = host.New(host.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), BMCs: c.BMCs, Inband: agents, Boot: media,
		Clock: c.Clock, Chance: c.Chance, RootCAs: c.RootCAs, Enter: c.Enter, Workers: c.Workers, Limit: c.Limit, Metrics: c.registry(),
		BuildPreprovisioningImage: c.BuildPreprovisioningImage,
		Parts:                     []host.Part{&raid.Part{Clock: c.Clock}, parts.Settings(), parts.Components()}, // in the order of B-52
	})
	if err != nil {
		return err
	}
	s.hosts, s.media = hosts, media
	// The API asks at the agents' server: it is the one with TLS.
	secure := http.NewServeMux()
	secure.Handle("/", agents)
	secure.Handle(webhook.Path, webhook.Handler())
	s.onLead = append(s.onLead, func(ctx context.Context) error { // before it, it is another's
		return webhook.Register(ctx, s.mgr.GetClient(), c.Agents.URL, c.Identity.CA)
	})
	return errors.Join(
		hosts.Setup(ctx, s.mgr),
		parts.Setup(s.mgr),
		s.serve("agents", c.Agents, secure, c.Identity.Certificate),
		s.serve("media", c.Media, media),
		s.serveSecure(media),
		s.serveNetwork(media),
	)
}

// addDataImages adds the controller of DataImages.
func addDataImages(_ context.Context, s *Set) error {
	images, err := dataimage.New(dataimage.Config{
		Client: s.mgr.GetClient(), Clock: s.cfg.Clock, Enter: s.cfg.Enter, Workers: s.cfg.Workers,
	})
	if err != nil {
		return err
	}
	return images.Setup(s.mgr)
}

// addSubscriptions adds the controller of BMCEventSubscriptions.
func addSubscriptions(ctx context.Context, s *Set) error {
	if s.hosts == nil {
		return errors.New("it speaks to BMCs through the controller host: ask for that, too")
	}
	events, err := subscription.New(subscription.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Connect: s.hosts.Connect, Clock: s.cfg.Clock, Enter: s.cfg.Enter,
	})
	if err != nil {
		return err
	}
	return events.Setup(ctx, s.mgr)
}

// announce does what is to be done once this process leads.
func (s *Set) announce(ctx context.Context) error {
	for _, tell := range s.onLead {
		if err := tell(ctx); err != nil {
			return err
		}
	}
	close(s.works)
	return nil
}

// ready answers the readiness probe.
func (s *Set) ready(*http.Request) error {
	if !s.synced.Load() {
		return errors.New("the objects of the API are not known yet")
	}
	return nil
}
