package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A controller that is killed ends dozens of watches at once. When they shared a stream of
// etcd's client, their cancellations could block it for ever, and every other watch with it.
func TestWatchesThatEndAtOnceStopNoOthers(t *testing.T) {
	sockets, err := os.MkdirTemp("", "") //nolint:usetesting // short: the path of a socket has 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	e, err := startEtcd(t.Context(), etcdConfig(filepath.Join(t.TempDir(), "etcd"), sockets, false, &reporter{log: logr.Discard()}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	s := newInProcessStore(e)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})

	stays := s.client.Watch(t.Context(), "/", clientv3.WithPrefix())
	for round := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var ended []clientv3.WatchChan
		for i := range 100 {
			ended = append(ended, s.client.Watch(ctx, fmt.Sprintf("/%d/", i), clientv3.WithPrefix()))
		}
		cancel()
		for _, c := range ended {
			for range c {
			}
		}
		put, err := s.client.Put(t.Context(), fmt.Sprintf("/stays/%d", round), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := <-stays; len(got.Events) != 1 || got.Events[0].Kv.ModRevision != put.Header.Revision {
			t.Fatalf("round %d: the watch that stays got %+v, want the event of revision %d", round, got, put.Header.Revision)
		}
	}
}
