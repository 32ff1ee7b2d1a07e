package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// registerElementalNetboot binds the steps on servers that boot the seed of a registration over
// the network.
func (s *scenario) registerElementalNetboot(sc *stepRegistry) {
	sc.Step(`^the registration "([^"]*)" names the servers? "([^"]*)" for network boot$`, "sets the annotation with the MAC addresses of the servers' first NICs, and waits until the seed is offered to them", func(ctx context.Context, name, servers string) error {
		names := strings.Split(servers, ", ")
		if err := s.nameForNetworkBoot(ctx, name, names); err != nil {
			return err
		}
		return s.isOffered(ctx, name, len(names))
	})
	sc.Step(`^the registration "([^"]*)" names the server "([^"]*)" for network boot, in vain$`, "does the same, and waits until the condition NetworkBootReady is False by NetworkBootRefused", func(ctx context.Context, name, server string) error {
		if err := s.nameForNetworkBoot(ctx, name, []string{server}); err != nil {
			return err
		}
		return s.networkBootBecomes(ctx, name, func(r *elementalv1.ElementalRegistration) bool {
			c := condition.Get(r, elementalv1.NetworkBootReady)
			return c != nil && c.Reason == elementalv1.NetworkBootRefusedReason
		})
	})
	sc.Step(`^the registration "([^"]*)" is offered to (\d+) NICs?$`, "waits until the condition NetworkBootReady says so", s.isOffered)
	sc.Step(`^the servers boot from the disk, else over the network$`, "makes the boot order of all servers the disk and then the network, and restarts them, or switches them on", s.bootFromDiskElseNetwork)
	sc.Step(`^the server "([^"]*)" finds nothing to boot$`, "waits until the server has tried its boot sources in vain", s.findsNothingToBoot)
}

func (s *scenario) nameForNetworkBoot(ctx context.Context, name string, servers []string) error {
	var macs []string
	for _, server := range servers {
		d, err := s.lab.Control().Host(ctx, server)
		if err != nil {
			return err
		}
		macs = append(macs, d.BootMACAddress)
	}
	return s.changeRegistration(ctx, name, func(r *elementalv1.ElementalRegistration) error {
		r.Annotations = map[string]string{elementalv1.NetworkBootAnnotation: strings.Join(macs, ",")}
		return nil
	})
}

func (s *scenario) isOffered(ctx context.Context, name string, nics int) error {
	return s.networkBootBecomes(ctx, name, func(r *elementalv1.ElementalRegistration) bool {
		return condition.IsTrue(r, elementalv1.NetworkBootReady) && condition.Get(r, elementalv1.NetworkBootReady).Message == elementalv1.NetworkBootMessage(nics)
	})
}

func (s *scenario) networkBootBecomes(ctx context.Context, name string, ok func(*elementalv1.ElementalRegistration) bool) error {
	return eventually(ctx, "the condition NetworkBootReady is so", func(ctx context.Context) (bool, string, error) {
		r, err := s.readRegistration(ctx, name)
		return err == nil && ok(r), fmt.Sprint(r.Status.Conditions), err
	})
}

func (s *scenario) bootFromDiskElseNetwork(ctx context.Context) error {
	s.testLab.registered = true
	for _, h := range s.servers {
		if _, err := s.lab.Control().Boot(ctx, h.Name, control.Override{Order: "Hdd,Pxe"}); err != nil {
			return err
		}
		if err := s.restart(ctx, h.Name); err != nil {
			return err
		}
	}
	return nil
}

// restart restarts a server, or switches it on if it is off. The controllers may change the
// power of a BareMetalHost's server at the same time.
func (s *scenario) restart(ctx context.Context, server string) error {
	h, err := s.hostNamed(server)
	if err != nil {
		return err
	}
	return eventually(ctx, server+" restarts", func(ctx context.Context) (bool, string, error) {
		power, reset := h.Machine().Power, machine.ForceRestart
		if power == machine.PowerOff {
			reset = machine.ForceOn
		}
		err := h.Apply(ctx, machine.Reset{Kind: reset})
		if errors.Is(err, machine.ErrPower) {
			return false, fmt.Sprintf("%s: %v", power, err), nil
		}
		return err == nil, "", err
	})
}

func (s *scenario) findsNothingToBoot(ctx context.Context, server string) error {
	h, err := s.hostNamed(server)
	if err != nil {
		return err
	}
	return eventually(ctx, server+" has found nothing to boot", func(context.Context) (bool, string, error) {
		v := h.Machine()
		return v.Phase == machine.Halted, fmt.Sprintf("%s, %+v", v.Phase, v.OS), nil
	})
}
