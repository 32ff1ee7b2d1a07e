package lab

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/metalab-dev/metalab/agent/elemental"
	"github.com/metalab-dev/metalab/agent/sys"
	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack/network"
)

// Trouble is a defect of a server's operating system that its Elemental agent meets.
type Trouble struct {
	Full bool          // file systems have no room
	Skew time.Duration // by which the clock is ahead of real time, in which tokens are dated
}

// Trouble sets the defect of a server's operating system, in this boot and later ones.
func (l *Lab) Trouble(host string, t Trouble) {
	y := l.agents.systems
	y.mu.Lock()
	defer y.mu.Unlock()
	y.failures[host] = t
}

func (y *systems) trouble(host string) Trouble {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.failures[host]
}

// elementalSystem is a system for its Elemental agent: its file systems may have no room, and its kernel shows
// the server's hardware in /sys.
type elementalSystem struct {
	elemental.System
	full     func() bool
	hardware sys.System
}

// ReadFile implements elemental.System.
func (f elementalSystem) ReadFile(name string) ([]byte, error) {
	if strings.HasPrefix(name, "/sys/") {
		return fs.ReadFile(f.hardware.FS(), strings.TrimPrefix(name, "/"))
	}
	return f.System.ReadFile(name)
}

// Put implements elemental.System.
func (f elementalSystem) Put(files ...sys.File) error {
	if len(files) > 0 && f.full() {
		return &os.PathError{Op: "write", Path: files[0].Name, Err: syscall.ENOSPC}
	}
	return f.System.Put(files...)
}

// elementalServer is the certificate of the Elemental API, and the PEM of the authority that has
// signed it.
type elementalServer struct {
	certificate *tls.Certificate
	ca          string
}

// otherAuthorityDir has the authority of ReplaceElementalCertificate.
const otherAuthorityDir = "elemental-authority"

// ReplaceElementalCertificate gives the Elemental API another certificate when the controllers
// start next: one of the lab's authority, or of another.
func (l *Lab) ReplaceElementalCertificate(otherAuthority bool) error {
	if !otherAuthority {
		c, err := l.certificate("registration server")
		if err != nil {
			return err
		}
		ca, err := os.ReadFile(l.rack.CAFile())
		if err != nil {
			return err
		}
		l.setElementalServer(&elementalServer{c, string(ca)})
		return nil
	}
	dir := filepath.Join(l.cfg.Dir, otherAuthorityDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	a, err := network.OpenAuthority(dir, "other")
	if err != nil {
		return err
	}
	c, err := a.Issue(network.ServerCertificate{Host: "registration server", Addr: loopback.Addr(), Kind: bmc.P256})
	if err != nil {
		return fmt.Errorf("certificate of the registration server: %w", err)
	}
	l.setElementalServer(&elementalServer{c, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))})
	return nil
}

func (l *Lab) setElementalServer(s *elementalServer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.elementalServer = s
}
