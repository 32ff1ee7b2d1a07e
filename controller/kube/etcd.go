package kube

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcdQuota is the size of the database in bytes at which etcd refuses writes. The
// default of 2 GiB is too small for many thousand hosts with inspection data.
const etcdQuota = 8 << 30

// etcdConfig returns the configuration of an etcd with a single member, which listens
// only on Unix sockets in the folder sockets.
func etcdConfig(data, sockets string, fsync bool, r *reporter) *embed.Config {
	c := embed.NewConfig()
	c.Name = "metalab"
	c.Dir = data
	c.UnsafeNoFsync = !fsync
	// A single member, too, waits for an election timeout before it leads.
	c.TickMs, c.ElectionMs = 20, 200
	c.QuotaBackendBytes = etcdQuota
	c.SnapshotCatchUpEntries = 1 // entries held in memory for slow members: there are none
	c.EnableGRPCGateway = false  // a JSON API that nothing uses here
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLog(r))

	client := url.URL{Scheme: "unix", Path: clientSocket(sockets)}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	// There are no peers, but etcd requires an address for them.
	peer := url.URL{Scheme: "unix", Path: peerSocket(sockets)}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c
}

// startEtcd starts etcd and returns when it serves requests.
func startEtcd(ctx context.Context, c *embed.Config) (*embed.Etcd, error) {
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
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
	return nil, fmt.Errorf("etcd: %w", err)
}
