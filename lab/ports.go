package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const portsFile = "ports.json"

// ports are the addresses of services whose URLs are in objects and on media. A lab
// that is started again uses the same ones if they are free.
type ports struct {
	Images string `json:"images"`
	Inband string `json:"inband"`
	Boot   string `json:"boot"`
	// Images and Boot by HTTPS.
	SecureImages string `json:"secureImages"`
	SecureBoot   string `json:"secureBoot"`
	Registry     string `json:"registry,omitempty"` // the registry of OS images
	View         string `json:"view"`               // the lab's page
	// Elemental is the API for servers that register themselves, in a lab with that family.
	Elemental string `json:"elemental,omitempty"`
}

func loadPorts(dir string) (ports, error) {
	p := ports{Images: anyPort, Inband: anyPort, Boot: anyPort, SecureImages: anyPort, SecureBoot: anyPort, View: anyPort, Registry: anyPort}
	b, err := os.ReadFile(filepath.Join(dir, portsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w: remove it, and the lab uses free ports", filepath.Join(dir, portsFile), err)
	}
	return p, nil
}

func (p ports) save(dir string) error { return writeJSON(filepath.Join(dir, portsFile), p) }

// anyPort is an address with a free port on loopback.
const anyPort = "127.0.0.1:0"

// A stopped lab keeps its ports for its next start, so they are below those that systems give to
// connections (Linux: from 32768, RFC 6335: from 49152). Else a client of any program could get one
// meanwhile.
const (
	lowestPort = 10000
	portsEnd   = 20000 // tests hold ports above
	portTries  = 100
)

// listenAnywhere listens on a free port of loopback.
func listenAnywhere(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	for range portTries {
		port := lowestPort + rand.IntN(portsEnd-lowestPort)
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil || ctx.Err() != nil {
			return l, err
		}
	}
	return lc.Listen(ctx, "tcp", anyPort) // whatever is left
}

// listenWhereBefore listens on an address, or on any port where the address is in
// use.
func listenWhereBefore(ctx context.Context, address string, log *slog.Logger) (net.Listener, error) {
	if address == anyPort {
		return listenAnywhere(ctx)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil && ctx.Err() == nil {
		log.Warn("address taken, using another: URLs that name it are dead", "address", address, "error", err)
		l, err = listenAnywhere(ctx)
	}
	return l, err
}

// portPatience is how long controllers that start again in a lab that runs wait for their ports,
// whose URLs servers use at the moment. Another program may have got one meanwhile.
const portPatience = 20 * time.Second

// listenPatiently is listenWhereBefore that waits for an address in use until another program
// leaves it.
func listenPatiently(ctx context.Context, patience time.Duration, address string, log *slog.Logger) (net.Listener, error) {
	const poll = 50 * time.Millisecond
	if address != anyPort && patience > 0 {
		var l net.Listener
		_ = wait.PollUntilContextTimeout(ctx, poll, patience, true, func(context.Context) (_ bool, err error) {
			l, err = net.Listen("tcp", address)
			return !errors.Is(err, syscall.EADDRINUSE), nil
		})
		if l != nil {
			return l, nil
		}
	}
	return listenWhereBefore(ctx, address, log)
}
