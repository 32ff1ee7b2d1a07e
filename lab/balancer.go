package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/mosk/provider/loadbalancer"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// balancerAddresses are those that the load balancer of a Cluster may have in a lab: no other
// machine reaches them.
var balancerAddresses = netip.MustParsePrefix("127.0.0.0/8")

// dialControl connects to the Kubernetes API of a control machine. An emulated server has no
// network: the Cluster's API, which runs in the lab, answers in its place, while the server runs the
// system of its disk. Its connections end with that.
func (l *Lab) dialControl(ctx context.Context, b loadbalancer.Backend) (net.Conn, error) {
	kube, err := l.Kubernetes()
	if err != nil {
		return nil, err
	}
	var h metal3.BareMetalHost
	if err := kube.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Host}, &h); err != nil {
		return nil, err
	}
	all := l.Hosts()
	i := slices.IndexFunc(all, func(x control.Host) bool { return strings.EqualFold(x.BootMACAddress, h.Spec.BootMACAddress) })
	if i < 0 {
		return nil, fmt.Errorf("no server of the lab has the MAC address %s of BareMetalHost %s", h.Spec.BootMACAddress, h.Name)
	}
	server, ok := l.rack.Host(all[i].Name)
	if !ok {
		return nil, fmt.Errorf("the lab has no server %s", all[i].Name)
	}
	system, err := l.agents.systems.of(ctx, server)
	if err != nil {
		return nil, err
	}
	config, err := l.apiOf(ctx, kube, b)
	if err != nil {
		return nil, err
	}
	api, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes API: %w", err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", api.Host)
	if err != nil {
		return nil, err
	}
	return serverConn{conn.(*net.TCPConn), context.AfterFunc(system.ctx, func() { conn.Close() })}, nil
}

// serverConn is a connection to a server's system, which ends with it.
type serverConn struct {
	*net.TCPConn
	forget func() bool
}

// Close implements net.Conn.
func (c serverConn) Close() error {
	c.forget()
	return c.TCPConn.Close()
}
