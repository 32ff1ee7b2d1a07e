package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/guest/cloudinit"
	"github.com/metalab-dev/metalab/lab/pxe"
)

// overNetwork are the boot sources that a NIC's firmware tries.
var overNetwork = map[machine.SourceKind]bool{machine.Pxe: true, machine.UefiHTTP: true}

// dhcpWaits is how long firmware waits after each DHCPDISCOVER without an answer, in
// the lab's time: a minute in all (PXE 2.1, §2.2.2).
var dhcpWaits = []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second}

// tryNetworkBoot starts a network boot and returns at once. The machine is answered
// when the boot has ended.
func (a *agents) tryNetworkBoot(h *rack.Host, ev machine.BootAttempted) {
	a.runUntilStop(func(ctx context.Context) {
		system, err := a.bootFromNetwork(ctx, h, ev)
		if ctx.Err() != nil {
			return
		}
		defer a.clock.Enter()()
		if err == nil {
			err = a.saveNetworkBoot(h, networkBoot{Boot: ev.Boot, Media: system.Media, Seed: system.Seed, Cmdline: system.Cmdline})
		}
		switch {
		case err != nil:
			a.reply(h, ev, "", err.Error())
		case system.Seed != nil:
			a.reply(h, ev, liveOS, "")
		default:
			a.reply(h, ev, AgentOS, "")
		}
	})
}

// bootFromNetwork repeats the boot until a server answers or the last wait is over.
func (a *agents) bootFromNetwork(ctx context.Context, h *rack.Host, ev machine.BootAttempted) (system pxe.System, err error) {
	v := h.Machine()
	i := slices.IndexFunc(v.Identity.NICs, func(n machine.NIC) bool { return n.ID == ev.Source.Device })
	switch {
	case i < 0:
		return system, errors.New("no such NIC")
	case !v.Cabling.Linked(ev.Source.Device):
		return system, errors.New("no link")
	}
	nic := pxe.NIC{MAC: v.Identity.NICs[i].MAC, UUID: v.Identity.UUID, Legacy: v.Override.Mode == machine.Legacy}
	for _, wait := range dhcpWaits {
		leave := a.clock.Enter()
		if ev.Source.Kind == machine.UefiHTTP {
			system, err = a.net.HTTP(ctx, nic, ev.Source.URI)
		} else {
			system, err = a.net.PXE(ctx, nic)
		}
		timer := a.clock.NewTimer(wait)
		leave()
		if !errors.Is(err, pxe.ErrSilent) {
			timer.Stop()
			return system, err
		}
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return system, ctx.Err()
		}
		if now := h.Machine(); now.Phase != machine.Selecting || now.Boots != ev.Boot {
			return system, errors.New("switched off meanwhile")
		}
	}
	return system, err
}

// networkBoot is an agent, or the seed of another system, that a server has loaded over the
// network. It is stored because it cannot be read again, as media can.
type networkBoot struct {
	Boot    uint64        `json:"boot"`
	Media   job.Media     `json:"media,omitzero"`
	Seed    *netboot.Seed `json:"seed,omitempty"`
	Cmdline string        `json:"cmdline,omitempty"`
}

func (a *agents) networkBootFile(h *rack.Host) string { return filepath.Join(a.dir, h.Name()+".json") }

// saveNetworkBoot stores what a server has loaded, so that it survives a restart of
// the lab.
func (a *agents) saveNetworkBoot(h *rack.Host, l networkBoot) error {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	return writeJSON(a.networkBootFile(h), l)
}

// loadNetworkBoot reads what saveNetworkBoot has stored for this boot.
func (a *agents) loadNetworkBoot(h *rack.Host, boot uint64) (networkBoot, error) {
	var l networkBoot
	b, err := os.ReadFile(a.networkBootFile(h))
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err == nil && l.Boot != boot {
		err = fmt.Errorf("holds boot %d, not %d", l.Boot, boot)
	}
	if err != nil {
		return networkBoot{}, fmt.Errorf("memory: %w", err)
	}
	return l, nil
}

// networkSource returns the data source of the system that a server has loaded over the
// network.
func (a *agents) networkSource(h *rack.Host, boot uint64) (cloudinit.Instance, error) {
	l, err := a.loadNetworkBoot(h, boot)
	if err != nil {
		return cloudinit.Instance{}, err
	}
	if l.Seed == nil {
		return cloudinit.Instance{}, cloudinit.ErrNoSource
	}
	i, err := cloudinit.ParseNoCloud(l.Seed.MetaData)
	i.UserData = l.Seed.UserData
	return i, err
}

// deleteNetworkBoot removes what a server has loaded.
func (a *agents) deleteNetworkBoot(h *rack.Host) {
	if err := os.Remove(a.networkBootFile(h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("memory of a server is not empty", "machine", h.Name(), "error", err)
	}
}

// keyFile returns the file of the key that a server's agent has made in a boot. It survives
// a restart of the lab, as the server's memory does.
func (a *agents) keyFile(h *rack.Host, boot uint64) string {
	return filepath.Join(a.dir, h.Name(), strconv.FormatUint(boot, 10)+".key")
}

// deleteKey removes the key of a boot that has ended.
func (a *agents) deleteKey(h *rack.Host, boot uint64) {
	if err := os.Remove(a.keyFile(h, boot)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("memory of a server is not empty", "machine", h.Name(), "error", err)
	}
}
