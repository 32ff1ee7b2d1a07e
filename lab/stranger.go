package lab

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/lab/pxe"
)

// Stranger is a client on the network that runs an agent with another key, to lease the jobs
// of a server's agent, and to read the user data in them.
type Stranger struct {
	lab   *Lab
	host  *rack.Host
	local tls.Certificate // certificate of its agent's key
	media job.Media       // read from the server's boot medium
}

// NewStranger returns a Stranger that leases for a host of the lab.
func (l *Lab) NewStranger(host string) (*Stranger, error) {
	h, ok := l.rack.Host(host)
	if !ok {
		return nil, fmt.Errorf("there is no host %s", host)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Stranger{lab: l, host: h, local: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// MediumURL returns the URL of the medium in the server's virtual CD, as its BMC got it.
func (x *Stranger) MediumURL() (string, error) {
	for _, s := range x.host.BMC().Slots {
		if s.Image != "" {
			return s.Image, nil
		}
	}
	return "", errors.New("the server's virtual CD is empty")
}

// maxMedium bounds the bytes of a medium.
const maxMedium = 64 << 20

// Fetch fetches a medium, and reads the token on it. It returns the status of the response.
func (x *Stranger) Fetch(ctx context.Context, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := x.client(x.lab.rack.CAs()).Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxMedium))
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp.StatusCode, err
	}
	m, err := pxe.ReadISO(bytes.NewReader(b), int64(len(b)))
	if err == nil {
		x.media = m
	}
	return resp.StatusCode, err
}

// BootByNetwork boots a machine with the MAC address of the server's first NIC over the
// provisioning network, and reads the token that it gets.
func (x *Stranger) BootByNetwork(ctx context.Context) error {
	id := x.host.Machine().Identity
	system, err := x.lab.agents.net.PXE(ctx, pxe.NIC{MAC: id.NICs[0].MAC, UUID: id.UUID})
	if err == nil {
		x.media = system.Media
	}
	return err
}

// ReadBooted reads the token of the agent that the server has booted, as a client can that
// has fetched the medium while the server booted.
func (x *Stranger) ReadBooted() (err error) {
	v := x.host.Machine()
	if v.OS == nil || v.OS.Name != AgentOS {
		return fmt.Errorf("%s does not run an agent", x.host.Name())
	}
	if overNetwork[v.OS.Source.Kind] {
		var from networkBoot
		from, err = x.lab.agents.loadNetworkBoot(x.host, v.OS.Boot)
		x.media = from.Media
		return err
	}
	x.media, err = readAgentMedia(x.host)
	return err
}

// Lease asks for work with the token that was read. It returns the status of the response,
// which is 200 when there is a job.
func (x *Stranger) Lease(ctx context.Context) (int, error) {
	if x.media.Token == "" {
		return 0, errors.New("no token was read")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(x.media.CA))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.media.Server+job.LeasePath, strings.NewReader(`{"agent":"stranger"}`))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+x.media.Token)
	resp, err := x.client(roots).Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (x *Stranger) client(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{x.local}, MinVersion: tls.VersionTLS12},
	}}
}
