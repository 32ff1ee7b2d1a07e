package control

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/metalab-dev/metalab/emulator/rack"
)

// TokenHeader is the header of requests from elsewhere. It is not Authorization: the API
// server of Kubernetes removes that header from the requests that it proxies.
const TokenHeader = "Metalab-Token"

// Remote is where programs of other hosts, or of other users, use the control API.
type Remote struct {
	Listener net.Listener // TLS listener
	Token    string       // must not be empty: whoever has it may do everything
}

// remoteName is the name in the certificate of a Remote.
const remoteName = "control"

// ListenRemote listens at an address for programs that have the token, with a certificate of
// the lab's authority.
func ListenRemote(ctx context.Context, l *rack.Rack, address, token string) (*Remote, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	at := ln.Addr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	cert, err := l.Certificate(remoteName, at)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	config := &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	return &Remote{Listener: tls.NewListener(ln, config), Token: token}, nil
}

// DialRemote returns a client for a Remote at host:port whose certificate is of an authority.
func DialRemote(address string, ca *x509.CertPool, token string) (*Client, error) {
	t := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: ca, ServerName: remoteName, MinVersion: tls.VersionTLS13},
		DisableKeepAlives: true, // a shard that was killed closes none
	}
	return NewRemoteClient(RemoteConfig{URL: "https://" + address, Token: token, Transport: t})
}

// guard answers 401 to requests without the token.
func (r *Remote) guard(h http.Handler) http.Handler {
	want := sha256.Sum256([]byte(r.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got := sha256.Sum256([]byte(req.Header.Get(TokenHeader)))
		if r.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			h.ServeHTTP(w, req)
			return
		}
		b, err := json.Marshal(errorBody{"the header " + TokenHeader + " must have the token of this lab"})
		if err != nil {
			panic(err) // it is a string
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(b) // else the client has left
	})
}

// RemoteConfig says how a client reaches the control API of a Remote. Where the URL has no
// TLS, what stands between must not leave this computer without it.
type RemoteConfig struct {
	URL       string // without /v1
	Token     string
	Transport http.RoundTripper // with the certificate authority; it must speak HTTP/1.1
}

// NewRemoteClient returns a client for a lab at a URL.
func NewRemoteClient(c RemoteConfig) (*Client, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, fmt.Errorf("%q is no URL with https", c.URL)
	case c.Token == "" || c.Transport == nil:
		return nil, errors.New("RemoteConfig: Token and Transport must not be empty")
	}
	return &Client{base: strings.TrimSuffix(c.URL, "/"), http: &http.Client{Transport: withToken{c.Transport, c.Token}}}, nil
}

// withToken adds the token to requests.
type withToken struct {
	http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(TokenHeader, t.token)
	return t.RoundTripper.RoundTrip(r)
}
