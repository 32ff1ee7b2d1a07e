// Package gateway gives the BMCs of a rack one more address, which all of them share: a client
// names the host by the server name of TLS (RFC 6066, §3), or by the header Forwarded
// (RFC 7239, §5.3). It relays a connection by name unchanged, so that the BMC itself speaks
// TLS, and proxies requests by header. It knows hosts only by their names.
package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// Bounds, in real time.
const (
	helloTimeout = 10 * time.Second // for the first message of a client
	dialTimeout  = 10 * time.Second
	idleTimeout  = 2 * time.Minute
	maxHeader    = 64 << 10 // bytes
	maxHello     = 64 << 10 // bytes
)

// Name is the name in the certificate of a gateway, by which gateways know each other.
const Name = "gateway"

// Target is where a BMC is.
type Target struct {
	Address string // host:port
	Plain   bool   // it speaks HTTP without TLS
	Peer    bool   // it is the gateway of another shard, which has the BMC
}

// Config configures a Gateway.
type Config struct {
	// Find returns where the BMC of a host is, and false when there is no such host.
	Find func(host string) (Target, bool)
	// Certificate is for connections that do not name a host. Its names have Name.
	Certificate *tls.Certificate
	// RootCAs signs the certificates of other gateways.
	RootCAs *x509.CertPool
	Log     *slog.Logger // nil: none
}

// Gateway relays connections and requests to BMCs.
type Gateway struct {
	c       Config
	local   *http.Transport // to BMCs of this process
	peers   *http.Transport
	unnamed *queue // connections that do not name a host

	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
}

// New returns a gateway.
func New(c Config) (*Gateway, error) {
	if c.Find == nil || c.Certificate == nil {
		return nil, errors.New("Config.Find and Config.Certificate must not be nil")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &Gateway{
		c: c, conns: map[net.Conn]bool{},
		// The connection does not leave this computer, and users install certificates of
		// their own on BMCs.
		local: &http.Transport{DialContext: dialer.DialContext, IdleConnTimeout: idleTimeout, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		peers: &http.Transport{DialContext: dialer.DialContext, IdleConnTimeout: idleTimeout, TLSClientConfig: &tls.Config{RootCAs: c.RootCAs, ServerName: Name, MinVersion: tls.VersionTLS12}},
	}, nil
}

// Serve answers at a listener until ctx ends, and closes it. It can be called once.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	g.unnamed = &queue{addr: ln.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{
		Handler: http.HandlerFunc(g.serveHTTP), ReadHeaderTimeout: helloTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:  slog.NewLogLogger(g.c.Log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{*g.c.Certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}
	var all sync.WaitGroup
	all.Go(func() { _ = srv.ServeTLS(g.unnamed, "", "") }) // ends when it is closed
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var err error
	for {
		var conn net.Conn
		if conn, err = ln.Accept(); err != nil {
			break
		}
		all.Go(func() { g.serve(ctx, conn) })
	}
	g.closeAll()
	_ = srv.Close() // errors only for the queue
	g.local.CloseIdleConnections()
	g.peers.CloseIdleConnections()
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, ln.Close())
}

// track remembers a connection until it is forgotten, so that the end of the gateway ends it.
func (g *Gateway) track(c net.Conn) (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[c] = true
	return !g.ended
}

func (g *Gateway) forget(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
	c.Close()
}

func (g *Gateway) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for c := range g.conns { // connections are independent: their order is not seen
		c.Close()
	}
}

// serve relays one connection, or hands it to the HTTP server.
func (g *Gateway) serve(ctx context.Context, conn net.Conn) {
	if !g.track(conn) {
		g.forget(conn)
		return
	}
	name, sent, err := readServerName(conn)
	if err != nil {
		g.forget(conn)
		return
	}
	to, ok := g.find(name)
	if !ok || to.Plain {
		g.mu.Lock()
		delete(g.conns, conn) // the HTTP server closes it
		g.mu.Unlock()
		if !g.unnamed.hand(&replayed{Conn: conn, from: io.MultiReader(bytes.NewReader(sent), conn)}) {
			conn.Close()
		}
		return
	}
	defer g.forget(conn)
	dialer := &net.Dialer{Timeout: dialTimeout}
	bmc, err := dialer.DialContext(ctx, "tcp", to.Address)
	if err != nil {
		reset(conn)
		return
	}
	defer g.forget(bmc)
	if !g.track(bmc) {
		return
	}
	if _, err := bmc.Write(sent); err != nil {
		reset(conn)
		return
	}
	relay(conn, bmc)
}

// find returns where the BMC of a host is. The name may be longer than the host's:
// node-7.racks.example.com.
func (g *Gateway) find(name string) (Target, bool) {
	if net.ParseIP(name) != nil {
		return Target{}, false
	}
	host, _, _ := strings.Cut(strings.ToLower(name), ".")
	if host == "" {
		return Target{}, false
	}
	return g.c.Find(host)
}

// relay copies in both directions until both have ended, or one fails. A BMC that resets its
// connection resets the client's.
func relay(client, bmc net.Conn) {
	ended := make(chan error, 2)
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			err = half.CloseWrite()
		}
		ended <- err
	}
	go pass(bmc, client)
	go pass(client, bmc)
	err := <-ended
	if err == nil {
		err = <-ended
		if err == nil {
			return
		}
	} else {
		defer func() { <-ended }()
	}
	reset(client)
	bmc.Close()
}

// reset closes a connection so that the peer sees a reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it is closed in any case
	}
	c.Close()
}

// errRead ends a handshake whose first message has been read.
var errRead = errors.New("the first message has been read")

// readServerName reads the first message of a client, and returns the server name in it, or
// "", and all bytes that were read.
func readServerName(conn net.Conn) (name string, sent []byte, err error) {
	if err := conn.SetReadDeadline(clock.Wall().Add(helloTimeout)); err != nil {
		return "", nil, err
	}
	var read bytes.Buffer
	first := firstMessage{Conn: conn, from: io.TeeReader(io.LimitReader(conn, maxHello), &read)}
	err = tls.Server(first, &tls.Config{ //nolint:gosec // it only reads
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name = hello.ServerName
			return nil, errRead
		},
	}).Handshake()
	if !errors.Is(err, errRead) {
		return "", nil, err
	}
	return name, read.Bytes(), conn.SetReadDeadline(time.Time{})
}

// firstMessage is a connection from which the first message is read, and to which nothing is
// sent: the handshake that reads it ends with an alert.
type firstMessage struct {
	net.Conn
	from io.Reader
}

// Read implements io.Reader.
func (c firstMessage) Read(b []byte) (int, error) { return c.from.Read(b) }

// Write implements io.Writer.
func (c firstMessage) Write(b []byte) (int, error) { return len(b), nil }

// replayed is a connection that begins with bytes that were read before.
type replayed struct {
	net.Conn
	from io.Reader
}

// Read implements io.Reader.
func (c *replayed) Read(b []byte) (int, error) { return c.from.Read(b) }

// queue is a listener of connections that were accepted by another.
type queue struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (q *queue) hand(c net.Conn) bool {
	select {
	case q.conns <- c:
		return true
	case <-q.closed:
		return false
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error { q.once.Do(func() { close(q.closed) }); return nil }

// Addr implements net.Listener.
func (q *queue) Addr() net.Addr { return q.addr }

// serveHTTP proxies a request to the BMC that its header names.
func (g *Gateway) serveHTTP(w http.ResponseWriter, r *http.Request) {
	name := forwardedHost(r.Header.Values("Forwarded"))
	if name == "" {
		http.Error(w, "name the host of a BMC: by the server name of TLS, by the header Forwarded: host=NAME, or use its own port", http.StatusMisdirectedRequest)
		return
	}
	to, ok := g.find(name)
	if !ok {
		http.Error(w, fmt.Sprintf("there is no host %s", name), http.StatusNotFound)
		return
	}
	at := &url.URL{Scheme: "https", Host: to.Address}
	if to.Plain {
		at.Scheme = "http"
	}
	transport := g.local
	if to.Peer {
		transport = g.peers
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(at)
			if to.Peer { // which has to find it, too; a BMC sees no proxy
				p.Out.Header.Set("Forwarded", "host="+name)
			}
		},
		Transport: transport, FlushInterval: -1, // the proxy flushes each event at once
		ErrorLog: slog.NewLogLogger(g.c.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if rc, _, hijack := http.NewResponseController(w).Hijack(); hijack == nil { // as the BMC has done
				rc.Close()
			}
		},
	}
	proxy.ServeHTTP(w, r)
}

// forwardedHost returns the host of the first element of Forwarded headers, without a port;
// "" when it has none (RFC 7239, §4).
func forwardedHost(headers []string) string {
	first, _, _ := strings.Cut(strings.Join(headers, ","), ",")
	for pair := range strings.SplitSeq(first, ";") {
		key, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || !strings.EqualFold(key, "host") {
			continue
		}
		value = strings.Trim(value, `"`)
		if host, _, err := net.SplitHostPort(value); err == nil {
			value = host
		}
		return value
	}
	return ""
}
