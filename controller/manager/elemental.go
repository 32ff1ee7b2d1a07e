package manager

import (
	"context"
	"crypto/tls"
	"errors"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental"
	"github.com/metalab-dev/metalab/controller/elemental/registration"
	"github.com/metalab-dev/metalab/controller/netboot"
)

// Elemental is the API by which servers register themselves.
type Elemental struct {
	// Endpoint is its HTTPS server. Its URL is that of registrations without an address.
	Endpoint
	CA string // PEM certificates that agents trust for it; "" means those that they have
	// Seed returns the data with which a system registers the server that it runs on. It is
	// served to servers that boot over the network of the controller host. Nil means that it
	// is not.
	Seed func(*elementalv1.ElementalRegistration) (netboot.Seed, error)
	// CompatClaims and CompatLabels accept what upstream's API accepts: see registration.Compat.
	CompatClaims, CompatLabels bool
}

// seeds serves the seeds of registrations over the network.
type seeds struct {
	net  *netboot.Server
	seed func(*elementalv1.ElementalRegistration) (netboot.Seed, error)
}

// Offer implements elemental.Seeds.
func (s seeds) Offer(g *elementalv1.ElementalRegistration, macs []string) ([]string, error) {
	seed, err := s.seed(g)
	if err != nil {
		s.Withdraw(client.ObjectKeyFromObject(g))
		return nil, err
	}
	return s.net.OfferSeed(ownerOfSeed(client.ObjectKeyFromObject(g)), seed, macs), nil
}

// Withdraw implements elemental.Seeds.
func (s seeds) Withdraw(key client.ObjectKey) { s.net.WithdrawSeed(ownerOfSeed(key)) }

func ownerOfSeed(key client.ObjectKey) string { return "the ElementalRegistration " + key.String() }

// addElemental adds the controllers of the Elemental kinds, and the API for agents.
func addElemental(_ context.Context, s *Set) error {
	c := s.cfg.Elemental
	if c == nil || c.URL == "" {
		return errors.New("Config.Elemental has no URL: agents register there")
	}
	if err := checkKinds(s.mgr.GetRESTMapper(), elementalNeeds); err != nil {
		return err
	}
	local, err := s.uncached() // whose Nodes are no kind that the cache should watch
	if err != nil {
		return err
	}
	config := elemental.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Wall: clock.RealClock{}, URL: c.URL, CA: c.CA, Local: local,
		Work: s.cfg.work(),
	}
	if c.Seed != nil && s.media != nil && s.media.HasNetwork() {
		config.Seeds = seeds{net: s.media, seed: c.Seed}
	}
	controllers, err := elemental.New(config)
	if err != nil {
		return err
	}
	server, err := registration.New(registration.Config{
		Client: s.mgr.GetClient(), Reader: s.mgr.GetAPIReader(), Wall: clock.RealClock{},
		Compat: registration.Compat{Claims: c.CompatClaims, Labels: c.CompatLabels},
		Enter:  s.cfg.Enter, Log: s.cfg.Log,
	})
	if err != nil {
		return err
	}
	cert := s.cfg.Identity.Certificate
	if c.Certificate != nil {
		cert = *c.Certificate
	}
	return errors.Join(
		controllers.Setup(s.mgr),
		s.serve("the Elemental API", c.Endpoint, server, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}),
	)
}
