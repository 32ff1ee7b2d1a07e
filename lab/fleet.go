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
func (l *Lab) startGateway(ctx context.Context) error {
	c := l.cfg.Gateway
	if c == nil {
		return nil
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Address)
	if err != nil {
		return fmt.Errorf("the gateway: %w", err)
	}
	cert, err := l.rack.NamedCertificate(gateway.Name, c.Name, ln.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap())
	if err == nil {
		var g *gateway.Gateway
		if g, err = gateway.New(gateway.Config{Find: l.findBMC, Certificate: cert, RootCAs: l.rack.CAs(), Log: l.cfg.Log}); err == nil {
			l.run(func(ctx context.Context) error { return g.Serve(ctx, ln) })
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the gateway: %w", err), ln.Close())
}

// findBMC returns where the BMC of a host is.
func (l *Lab) findBMC(name string) (gateway.Target, bool) {
	if h, ok := l.rack.Host(name); ok {
		return gateway.Target{Address: h.Address().String(), Plain: h.Dialect().Protocol.PlainHTTP}, true
	}
	if l.cfg.Gateway.Peer == nil {
		return gateway.Target{}, false
	}
	at, ok := l.cfg.Gateway.Peer(name)
	return gateway.Target{Address: at, Peer: true}, ok
}

// startFleet starts the shards.
func (l *Lab) startFleet(ctx context.Context) error {
	if l.cfg.Fleet == nil {
		return nil
	}
	l.cfg.Progress(fmt.Sprintf("%d shards of up to %d servers each", l.cfg.Settings.Shards, l.cfg.Settings.ShardSize))
	l.closers = append(l.closers, l.cfg.Fleet.Stop)
	return l.cfg.Fleet.Start(ctx)
}

// startFleetControl opens the control socket of a lab in shards.
func (l *Lab) startFleetControl(context.Context) error {
	s, err := control.NewFleet(control.FleetConfig{
		Dir: l.cfg.Dir, Shards: l.cfg.Fleet.Shards, Scale: l.scale, Info: l.info, Down: func() { l.stop(errStopped) }, Log: l.cfg.Log,
	})
	if err != nil {
		return err
	}
	l.run(s.Serve)
	return nil
}

// scale changes how many shards run, and keeps that for the next start.
func (l *Lab) scale(ctx context.Context, shards int) error {
	l.scaling.Lock()
	defer l.scaling.Unlock()
	s := l.cfg.Settings
	if err := s.Scale(shards); err != nil {
		return err
	}
	if err := l.cfg.Fleet.Scale(ctx, shards, s.Complete()); err != nil {
		return err
	}
	l.cfg.Settings = s
	return errors.Join(s.save(l.cfg.Dir), l.writeFiles(), l.rack.SealFiles())
}

// listenRemote listens for programs elsewhere, when the configuration says so.
func (l *Lab) listenRemote(ctx context.Context) (*control.Remote, error) {
	c := l.cfg.Remote
	if c == nil {
		return nil, nil
	}
	r, err := control.ListenRemote(ctx, l.rack, c.Address, c.Token)
	if err != nil || c.File == "" {
		return r, err
	}
	return r, writeFile(filepath.Clean(c.File), []byte(r.Listener.Addr().String()+"\n"), 0o600)
}
