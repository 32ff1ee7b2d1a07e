package kube

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdQuota is the size in bytes at which etcd stops to take writes. The default
// of 2 GiB is short for a lab of many thousand hosts with inspection data.
const etcdQuota = 8 << 30

// etcdConfig describes an etcd of one member that is reached only through
// sockets in the folder sockets.
func etcdConfig(data, sockets string, fsync bool, r *reporter) *embed.Config {
	c := embed.NewConfig()
	c.Name = "metalab"
	c.Dir = data
	c.UnsafeNoFsync = !fsync
	// A member without others still waits this long for them before it leads.
	c.TickMs, c.ElectionMs = 20, 200
	c.QuotaBackendBytes = etcdQuota
	c.SnapshotCatchUpEntries = 1 // kept in memory for members that lag behind: there are none
	c.EnableGRPCGateway = false  // a second API for people with curl, of no use here
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLog(r))

	client := url.URL{Scheme: "unix", Path: clientSocket(sockets)}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	// Nobody is at the other end, but etcd insists on a place for its peers.
	peer := url.URL{Scheme: "unix", Path: peerSocket(sockets)}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c
}

// startEtcd returns when etcd takes requests.
func startEtcd(ctx context.Context, c *embed.Config) (*embed.Etcd, error) {
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("kube: etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return nil, fmt.Errorf("kube: etcd: %w", err)
}
