package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/lab"
)

func (s *scenario) registerNetboot(sc *stepRegistry) {
	sc.Step(`^the operator registers the server by "([^"]*)"$`, "applies the Secret, and the BareMetalHost with a BMC address of this scheme",
		func(ctx context.Context, scheme string) error { return s.registerWithScheme(ctx, scheme, nil) })
	sc.Step(`^the operator registers the server by "([^"]*)" without its MAC address$`, "applies the Secret, and the BareMetalHost with an address of this scheme and no bootMACAddress",
		func(ctx context.Context, scheme string) error {
			return s.registerWithScheme(ctx, scheme, func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress = "" })
		})
	sc.Step(`^a second host has the MAC address of the server$`, "registers the same server by IPMI under another name, and waits until it is available", func(ctx context.Context) error { return s.registerSecondHost(ctx, "ipmi", true) })
	sc.Step(`^a second host has the server by "([^"]*)"$`, "registers the same server by an address of this scheme under another name and without a MAC address, and waits until it is available",
		func(ctx context.Context, scheme string) error { return s.registerSecondHost(ctx, scheme, false) })
	sc.NegativeStep(`^the server has booted "([^"]*)"$`, "asserts, once each controller has reconciled every object, which systems the server has booted, and from which boot sources, in order", s.hasStarted)
	sc.NegativeStep(`^the BMC has received no request for virtual media$`, "asserts, once each controller has reconciled every object, that the journal has requests to the BMC, and none for a VirtualMedia path", s.mediaUntouched)
}

// addressWithScheme returns the address of the server's BMC with a scheme.
func (s *scenario) addressWithScheme(scheme string) string {
	if scheme == "ipmi" || scheme == "libvirt" {
		return scheme + "://" + s.server.IPMI
	}
	_, rest, _ := strings.Cut(s.server.BMCAddress, "://")
	return scheme + "://" + rest
}

func (s *scenario) registerWithScheme(ctx context.Context, scheme string, change func(*metal3.BareMetalHost)) error {
	secret, host := lab.Objects(s.server)
	host.Spec.BMC.Address = s.addressWithScheme(scheme)
	if change != nil {
		change(host)
	}
	return s.create(ctx, secret, host)
}

// registerSecondHost registers the same server under another name.
func (s *scenario) registerSecondHost(ctx context.Context, scheme string, mac bool) error {
	secret, host := lab.Objects(s.server)
	secret.Name, host.Name = secret.Name+"-twin", host.Name+"-twin"
	host.Spec.BMC.Address, host.Spec.BMC.CredentialsName = s.addressWithScheme(scheme), secret.Name
	if !mac {
		host.Spec.BootMACAddress = ""
	}
	if err := s.create(ctx, secret, host); err != nil {
		return err
	}
	return eventually(ctx, "the second host is inspected", func(ctx context.Context) (bool, string, error) {
		h, err := s.readNamed(ctx, host.Name)
		if err != nil {
			return false, "", err
		}
		return h.Status.Provisioning.State == metal3.StateAvailable, string(h.Status.Provisioning.State), nil
	})
}

func (s *scenario) journal() ([]journal.Entry, error) {
	all, _, err := s.lab.Rack().Journal().Select(journal.Query{Host: s.server.Name})
	return all, err
}

func (s *scenario) hasStarted(ctx context.Context, list string) error {
	if err := s.letServerAct(ctx); err != nil {
		return err
	}
	all, err := s.journal()
	if err != nil {
		return err
	}
	var got []string
	for _, e := range all {
		if e.What == "os.started" {
			got = append(got, e.Text)
		}
	}
	if want := strings.Split(list, ", "); !slices.Equal(got, want) {
		return fmt.Errorf("the server has started %q, want %q", got, want)
	}
	return nil
}

func (s *scenario) mediaUntouched(ctx context.Context) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	all, err := s.journal()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(e journal.Entry) bool { return e.Kind == journal.Request }) {
		return errors.New("the journal has no request to the BMC")
	}
	for _, e := range all {
		if strings.Contains(e.Path, "VirtualMedia") {
			return fmt.Errorf("%s %s", e.Method, e.Path)
		}
	}
	return nil
}
