package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/cluster"
	"github.com/metalab-dev/metalab/scenarios/cluster/clustertest"
)

// Every kind of request reaches the shards through the proxy of the API server.
func TestShardsAreReachedThroughTheAPIServer(t *testing.T) {
	a := clustertest.Start(t)
	ctx := t.Context()
	shards, err := cluster.Shards(ctx, cluster.Config{API: a.Config(), Namespace: "n", Name: "racks"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := control.NewFleet(control.FleetConfig{Dir: dir, Shards: func() []control.Shard { return shards }})
	if err != nil {
		t.Fatal(err)
	}
	serving, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Serve(serving); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	client := control.NewClient(dir)
	hosts, err := client.Hosts(ctx)
	if err != nil || len(hosts) != 8 {
		t.Fatalf("%d hosts, %v, want 8", len(hosts), err)
	}
	for i, h := range hosts {
		want := map[bool]string{true: "reachable", false: control.Offline}[i < 4]
		if h.Name != fmt.Sprintf("node-%d", i) || h.Reach != want {
			t.Errorf("host %d is %s, %s, want node-%d, %s", i, h.Name, h.Reach, i, want)
		}
	}
	if h, err := client.Power(ctx, "node-3", "On"); err != nil || h.Power == "Off" {
		t.Errorf("Power = %+v, %v", h, err)
	}
	if p := a.Labs[1].Hosts()[1].Machine().Power; p == "Off" {
		t.Errorf("the power of node-3 is %s", p)
	}
	var out strings.Builder
	if err := client.Console(ctx, "node-3", strings.NewReader(""), &out); err != nil {
		t.Errorf("Console = %v", err)
	}
	st, err := client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"up", "up", "its pod is not ready (Pending)", "scaled in"} {
		if got := st.Shards[i].State; !strings.HasPrefix(got, want) {
			t.Errorf("shard %d: %s, want %s", i, got, want)
		}
	}
	if err := client.Down(ctx); err == nil {
		t.Error("Down stops a lab in a cluster")
	}
}

// What keeps a lab from being found is named.
func TestShardsNameWhatIsMissing(t *testing.T) {
	a := clustertest.Start(t)
	for _, tt := range []struct {
		path string
		put  any
		want string
	}{
		{"/api/v1/namespaces/n/secrets/racks", corev1.Secret{}, "labctl shard secret makes one"},
		{"/api/v1/namespaces/n/secrets/racks", corev1.Secret{Data: map[string][]byte{cluster.TokenKey: []byte("wrong")}}, control.TokenHeader},
		{"/api/v1/namespaces/n/pods", corev1.PodList{}, "no shard is up"},
		{"/apis/apps/v1/namespaces/n/statefulsets/racks", nil, "get statefulsets.apps racks"},
	} {
		was := a.Put(tt.path, tt.put)
		if _, err := cluster.Shards(t.Context(), cluster.Config{API: a.Config(), Namespace: "n", Name: "racks"}); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "racks in namespace n") {
			t.Errorf("Shards with another %s = %v, want %s", tt.path, err, tt.want)
		}
		a.Put(tt.path, was)
	}
}
