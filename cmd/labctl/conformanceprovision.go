package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/redfish"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/conformance"
	"github.com/metalab-dev/metalab/scenarios/images"
)

// demoImage is the value of --provisioner for the image of labs, which an emulated server
// boots.
const demoImage = "demo"

// imageName is the name of the provisioner's image on the media server.
const imageName = "system.img"

// Time limits of the provisioner. The checks use the same for the BMC.
const (
	powerPatience = 3 * time.Minute
	bootPatience  = 20 * time.Minute
	writePatience = time.Hour
	powerPoll     = 2 * time.Second
)

// provisioner provisions a server with the drivers of the controllers and the agent. It is
// a conformance.Provisioner.
type provisioner struct {
	boot *bootMedia
	open func(context.Context) (bmc.Client, error)
	url  string // URL of the image
	sum  string // SHA-256 of the image, in hex
}

// newProvisioner serves an image beside m. The image stays open until stop is called.
func newProvisioner(m *mediaServer, b *bootMedia, name string, c conformance.Config) (_ *provisioner, stop func(), err error) {
	address, err := bmcAddress(c.URL)
	if err != nil {
		return nil, nil, err
	}
	var content io.ReadSeeker
	stop = func() {}
	if name == demoImage {
		raw, err := images.Build()
		if err != nil {
			return nil, nil, err
		}
		content = bytes.NewReader(raw)
		m.serveImage(bytes.NewReader(raw), int64(len(raw)))
	} else {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, usage.New(fmt.Errorf("--provisioner: %w", err))
		}
		st, err := f.Stat()
		if err == nil && !st.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", name)
		}
		if err != nil {
			f.Close()
			return nil, nil, usage.New(fmt.Errorf("--provisioner: %w", err))
		}
		content, stop = f, func() { f.Close() }
		m.serveImage(f, st.Size())
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		stop()
		return nil, nil, fmt.Errorf("--provisioner: %w", err)
	}
	return &provisioner{
		boot: b, url: m.plain + "/" + imageName, sum: hex.EncodeToString(sum.Sum(nil)),
		open: func(ctx context.Context) (bmc.Client, error) {
			return openRedfish(ctx, address, c)
		},
	}, stop, nil
}

// openRedfish opens the BMC of a run by the driver.
func openRedfish(ctx context.Context, address bmc.Address, c conformance.Config) (bmc.Client, error) {
	opened, err := redfish.Open(ctx, bmc.Config{
		Address: address, Credentials: bmc.Credentials{Username: c.Username, Password: c.Password}, Insecure: c.Insecure, RootCAs: c.CAs,
	})
	if errors.Is(err, bmc.ErrUntrusted) {
		err = fmt.Errorf("%w: %s", err, capture.Remedy)
	}
	return opened, err
}

// bmcAddress returns the address of the Redfish service at a URL, as a host's object would
// have it.
func bmcAddress(at string) (bmc.Address, error) {
	u, err := url.Parse(at)
	if err != nil {
		return bmc.Address{}, err
	}
	scheme := "redfish-virtualmedia"
	if u.Scheme == "http" {
		scheme += "+http"
	}
	system := ""
	if strings.HasSuffix(path.Dir(path.Clean(u.Path)), "/Systems") {
		system = path.Clean(u.Path)
	}
	return bmc.ParseAddress(scheme + "://" + u.Host + system)
}

// Provision implements conformance.Provisioner.
func (p *provisioner) Provision(ctx context.Context, by string) (_ conformance.Step, err error) {
	if by != "virtual media" {
		return "", fmt.Errorf("%w: labctl provisions by virtual media", errors.ErrUnsupported)
	}
	c, err := p.open(ctx)
	if err != nil {
		return conformance.Register, err
	}
	defer c.Close()
	defer func() { // after a failure; after success the drive is empty
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), powerPatience)
		defer cancel()
		if ejected := c.EjectMedia(last); err == nil {
			err = ejected
		}
	}()
	boot, err := p.boot.next()
	if err != nil {
		return conformance.Boot, err
	}
	var report job.Report
	for _, s := range []struct {
		step conformance.Step
		do   func() error
	}{
		{conformance.Boot, func() error { return reachPower(ctx, c, bmc.PowerOff, bmc.Off) }},
		{conformance.Boot, func() error { return c.InsertMedia(ctx, p.boot.media.Media(boot)...) }},
		{conformance.Boot, func() error { return c.SetBoot(ctx, bmc.Boot{Device: bmc.BootCD}) }},
		{conformance.Boot, func() error { return reachPower(ctx, c, bmc.PowerOn, bmc.On) }},
		{conformance.Inspect, func() (err error) {
			report, err = p.ended(ctx, boot, bootPatience, inventoryJob)
			return err
		}},
		{conformance.Inspect, func() error {
			if report.Inventory == nil || len(report.Inventory.Disks) == 0 {
				return errors.New("the agent finds no disk")
			}
			return nil
		}},
		{conformance.Provision, func() error {
			return p.boot.jobs.Offer(boot, job.Job{ID: writeJob, Kind: job.Write, Write: &job.WriteSpec{URL: p.url, Checksum: p.sum, ChecksumType: "sha256"}})
		}},
		{conformance.Provision, func() error {
			_, err := p.ended(ctx, boot, writePatience, writeJob)
			return err
		}},
		{conformance.Provision, func() error { return reachPower(ctx, c, bmc.PowerOff, bmc.Off) }},
		{conformance.Provision, func() error { return c.EjectMedia(ctx) }},
		{conformance.Provision, func() error { return c.SetBoot(ctx, bmc.Boot{Device: bmc.BootDisk}) }},
		{conformance.Provision, func() error { return reachPower(ctx, c, bmc.PowerOn, bmc.On) }},
	} {
		if err := s.do(); err != nil {
			return s.step, err
		}
	}
	return "", nil
}

// ended waits for the end of a job of the agent.
func (p *provisioner) ended(ctx context.Context, boot inband.Boot, patience time.Duration, name string) (job.Report, error) {
	timed, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the agent has not done its job %s after %v", name, patience))
	defer cancel()
	r, err := p.boot.await(timed, boot, name)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		err = context.Cause(timed)
	}
	return r, err
}

// reachPower changes the power of a system, and waits until the BMC shows it. A BMC that cannot
// do it now gets the action again.
func reachPower(ctx context.Context, c bmc.Client, action bmc.PowerAction, want bmc.Power) error {
	timed, cancel := context.WithTimeoutCause(ctx, powerPatience, fmt.Errorf("%v after power %s the system is not %s", powerPatience, action, want))
	defer cancel()
	again := time.NewTicker(powerPoll)
	defer again.Stop()
	for sent := false; ; {
		s, err := c.System(timed)
		if err == nil && s.Power == want {
			return nil
		}
		if err == nil && !sent {
			err = c.SetPower(timed, action)
			sent = err == nil
		}
		if err != nil && !errors.Is(err, bmc.ErrBusy) {
			return err
		}
		select {
		case <-again.C:
		case <-timed.Done():
			return context.Cause(timed)
		}
	}
}
