package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/netboot"
	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// emulatedImage is the value of --boot-media for a server of a lab, which runs the agent
// itself and needs no kernel.
const emulatedImage = "emulated"

const (
	agentPrefix  = "/agent"      // path prefix in the URLs of boot media
	bootHost     = "conformance" // in the boots of one run, which has one server
	inventoryJob = "inventory"
	writeJob     = "write"
)

// bootMedia makes boot media with the agent, and leases jobs to the agent that boots from
// them. It is a conformance.BootMedia.
type bootMedia struct {
	image *netboot.Image // nil: the stub
	media *netboot.Server
	jobs  *inband.Server

	mu    sync.Mutex
	boots int
	// news is closed and replaced when the agent has come up or a job has changed.
	news chan struct{}
}

// serveBoot serves the agent's image of a directory beside m, and the agent's jobs at
// another port of the same address, until stop is called.
func serveBoot(m *mediaServer, dir string) (_ *bootMedia, stop func(), err error) {
	id, err := newAgentIdentity(m.ip)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(m.ip.String(), "0"))
	if err != nil {
		return nil, nil, fmt.Errorf("--boot-media: %w", err)
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	b := &bootMedia{news: make(chan struct{})}
	if b.jobs, err = inband.New(inband.Config{
		Key: id.Key, CA: id.CA, URL: "https://" + l.Addr().String(), Clock: clock.RealClock{}, Changed: func(string) { b.changed() },
	}); err != nil {
		return nil, nil, err
	}
	if dir != emulatedImage {
		if b.image, err = netboot.LoadImage(dir); err != nil {
			return nil, nil, fmt.Errorf("--boot-media %s: %w", dir, err)
		}
	}
	if b.media, err = netboot.New(netboot.Config{
		Key: id.Key, URL: m.plain + agentPrefix, Secure: m.secure + agentPrefix, Media: b.jobs.Media, Image: b.image,
	}); err != nil {
		return nil, nil, err
	}
	m.serveAgent(http.StripPrefix(agentPrefix, b.media))
	server := newMediaHTTP(b.jobs)
	var running sync.WaitGroup
	running.Go(func() { // it returns when the server closes
		_ = server.Serve(tls.NewListener(l, &tls.Config{
			Certificates: []tls.Certificate{id.Certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12,
		}))
	})
	return b, func() {
		server.Close()
		running.Wait()
		if b.image != nil {
			_ = b.image.Close() // it was only read
		}
	}, nil
}

// newAgentIdentity returns an identity for one run.
func newAgentIdentity(ip net.IP) (inband.Identity, error) {
	now := time.Now()
	secrets, err := inband.NewSecrets(now)
	if err != nil {
		return inband.Identity{}, err
	}
	return inband.NewIdentity(secrets, now, ip)
}

func (b *bootMedia) changed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.news)
	b.news = make(chan struct{})
}

// next begins a boot: the tokens and the media of the boot before end.
func (b *bootMedia) next() (inband.Boot, error) {
	b.mu.Lock()
	b.boots++
	boot := inband.Boot{Host: bootHost, ID: strconv.Itoa(b.boots)}
	b.mu.Unlock()
	b.jobs.Expect(boot, "")
	b.media.Open(boot)
	return boot, b.jobs.Offer(boot, job.Job{ID: inventoryJob, Kind: job.Inventory})
}

// await waits until a job of a boot has ended, and returns its report.
func (b *bootMedia) await(ctx context.Context, boot inband.Boot, id string) (job.Report, error) {
	for {
		b.mu.Lock()
		news := b.news
		b.mu.Unlock()
		st := b.jobs.Expect(boot, "")
		if st.Key != "" {
			b.jobs.Confirm(boot, st.Key)
		}
		switch r := st.Jobs[id]; r.State {
		case job.Done:
			return r, nil
		case job.Failed:
			return r, fmt.Errorf("the agent's job %s fails: %s", id, r.Error)
		}
		select {
		case <-news:
		case <-ctx.Done():
			return job.Report{}, ctx.Err()
		}
	}
}

// Image implements conformance.BootMedia.
func (b *bootMedia) Image(_ context.Context, scheme string) (string, func(context.Context) (conformance.BootReport, error), error) {
	boot, err := b.next()
	if err != nil {
		return "", nil, err
	}
	urls := b.media.Media(boot) // by HTTP, and by HTTPS
	url := urls[0]
	if scheme == "https" {
		url = urls[1]
	}
	return url, func(ctx context.Context) (conformance.BootReport, error) {
		r, err := b.await(ctx, boot, inventoryJob)
		if err != nil {
			return conformance.BootReport{}, err
		}
		return bootReport(r.Inventory), nil
	}, nil
}

// bootReport returns the part of an inventory that checks compare.
func bootReport(hw *job.Hardware) (r conformance.BootReport) {
	if hw == nil {
		return r
	}
	r.Serial = hw.System.Serial
	for _, n := range hw.NICs {
		if mac, err := net.ParseMAC(n.MAC); err == nil {
			r.MACs = append(r.MACs, mac)
		}
	}
	for _, d := range hw.Disks {
		r.Disks = append(r.Disks, conformance.Disk{Serial: d.Serial, WWN: d.WWN, Size: d.SizeBytes})
	}
	return r
}
