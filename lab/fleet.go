package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/gateway"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// Fleet runs the hosts of a lab in several processes, its shards.
type Fleet interface {
	// Start returns when all shards are up. The lab's certificate authority is in its
	// directory then.
	Start(ctx context.Context) error
	Shards() []control.Shard
	// Scale changes how many shards run, and returns when the new ones are up. The
	// definition may have more hosts than before.
	Scale(ctx context.Context, shards int, all rackfile.Lab) error
	// Stop returns when no shard runs.
	Stop() error
}

// Remote says how programs elsewhere use the control API of a shard.
type Remote struct {
	Address string // to listen on: host:port
	Token   string
	File    string // gets the address that was listened on; "" for none
}

// Gateway is the address that all BMCs of a shard share, beside those of their own.
type Gateway struct {
	Address string // to listen on: host:port
	Name    string // DNS name by which clients find it; "" for none
	// Peer, if not nil, returns the address of the gateway of the shard that has a host.
	Peer func(host string) (address string, ok bool)
}

// startGateway serves the gateway of a shard.
func (w *World) startGateway(ctx context.Context) error {
	c := w.cfg.Gateway
	if c == nil {
		return nil
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("world: the gateway: %w", err)
	}
	cert, err := w.lab.NamedCertificate(gateway.Name, c.Name, ln.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap())
	if err == nil {
		var g *gateway.Gateway
		if g, err = gateway.New(gateway.Config{Find: w.findBMC, Certificate: cert, RootCAs: w.lab.CAs(), Log: w.cfg.Log}); err == nil {
			w.run(func(ctx context.Context) error { return g.Serve(ctx, ln) })
			return nil
		}
	}
	return errors.Join(fmt.Errorf("world: the gateway: %w", err), ln.Close())
}

// findBMC returns where the BMC of a host is.
func (w *World) findBMC(name string) (gateway.Target, bool) {
	if h, ok := w.lab.Host(name); ok {
		return gateway.Target{Address: h.Address().String(), Plain: h.Dialect().Protocol.PlainHTTP}, true
	}
	if w.cfg.Gateway.Peer == nil {
		return gateway.Target{}, false
	}
	at, ok := w.cfg.Gateway.Peer(name)
	return gateway.Target{Address: at, Peer: true}, ok
}

// startFleet starts the shards.
func (w *World) startFleet(ctx context.Context) error {
	if w.cfg.Fleet == nil {
		return nil
	}
	w.cfg.Progress(fmt.Sprintf("%d shards of up to %d servers each", w.cfg.Settings.Shards, w.cfg.Settings.ShardSize))
	w.closers = append(w.closers, w.cfg.Fleet.Stop)
	return w.cfg.Fleet.Start(ctx)
}

// startFleetControl opens the control socket of a lab in shards.
func (w *World) startFleetControl(context.Context) error {
	s, err := control.NewFleet(control.FleetConfig{
		Dir: w.cfg.Dir, Shards: w.cfg.Fleet.Shards, Scale: w.scale, Info: w.info, Down: func() { w.stop(errStopped) }, Log: w.cfg.Log,
	})
	if err != nil {
		return err
	}
	w.run(s.Serve)
	return nil
}

// scale changes how many shards run, and keeps that for the next start.
func (w *World) scale(ctx context.Context, shards int) error {
	w.scaling.Lock()
	defer w.scaling.Unlock()
	s := w.cfg.Settings
	if err := s.Scale(shards); err != nil {
		return err
	}
	if err := w.cfg.Fleet.Scale(ctx, shards, s.Complete()); err != nil {
		return err
	}
	w.cfg.Settings = s
	return errors.Join(s.save(w.cfg.Dir), w.writeFiles(), w.lab.SealFiles())
}

// listenRemote listens for programs elsewhere, when the configuration says so.
func (w *World) listenRemote(ctx context.Context) (*control.Remote, error) {
	c := w.cfg.Remote
	if c == nil {
		return nil, nil
	}
	r, err := control.ListenRemote(ctx, w.lab, c.Address, c.Token)
	if err != nil || c.File == "" {
		return r, err
	}
	return r, writeFile(filepath.Clean(c.File), []byte(r.Listener.Addr().String()+"\n"), 0o600)
}
