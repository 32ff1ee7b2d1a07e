package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/emulator/rack/snapshot"
)

const token = "a token of this test"

// shardedLab is a lab of six hosts in three shards, of which the last does not run.
type shardedLab struct {
	*control.Client
	racks  []*racktest.Rack
	shards []control.Shard
	ended  chan struct{} // closed by Down
}

func startShards(t *testing.T) *shardedLab {
	t.Helper()
	runtimeDir(t)
	l := &shardedLab{ended: make(chan struct{})}
	for i := range 3 {
		r := rackfile.Default(6)
		r.Part = &rackfile.Part{First: 2 * i, Count: 2}
		s := control.Shard{Name: fmt.Sprintf("shard-%d", i), Rack: r, Dir: t.TempDir(), Off: control.ScaledIn}
		if i < 2 {
			one := racktest.Start(t, rack.Config{Rack: &r, Dir: s.Dir, Events: func(h *rack.Host, ev machine.Event) {
				if try, ok := ev.(machine.BootAttempted); ok {
					if err := h.Apply(context.Background(), machine.Loaded{Boot: try.Boot, Source: try.Source, Name: "system"}); err != nil {
						t.Error(err)
					}
				}
			}})
			remote, err := control.ListenRemote(t.Context(), one.Rack, "127.0.0.1:0", token)
			if err != nil {
				t.Fatal(err)
			}
			start(t, control.Config{Rack: one.Rack, Remote: remote})
			if s.Client, err = control.DialRemote(remote.Listener.Addr().String(), one.CAs(), token); err != nil {
				t.Fatal(err)
			}
			l.racks = append(l.racks, one)
		}
		l.shards = append(l.shards, s)
	}
	dir := t.TempDir()
	s, err := control.NewFleet(control.FleetConfig{
		Dir: dir, Shards: func() []control.Shard { return l.shards }, Down: func() { close(l.ended) },
		Info: func() control.Status { return control.Status{Kubeconfig: "/k"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	l.Client = control.NewClient(dir)
	return l
}

func refusedWith(err error, status int, text string) bool {
	var r *control.Refused
	return errors.As(err, &r) && r.Status == status && strings.Contains(r.Text, text)
}

// Without the token, a shard answers 401 and does nothing.
func TestRemoteWithoutTokenIsRefused(t *testing.T) {
	runtimeDir(t)
	l := racktest.Start(t, rack.Config{})
	remote, err := control.ListenRemote(t.Context(), l.Rack, "127.0.0.1:0", token)
	if err != nil {
		t.Fatal(err)
	}
	start(t, control.Config{Rack: l.Rack, Remote: remote})
	for _, wrong := range []string{"another token", token + "x"} {
		c, err := control.DialRemote(remote.Listener.Addr().String(), l.CAs(), wrong)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Power(t.Context(), "node-0", "On"); !refusedWith(err, http.StatusUnauthorized, control.TokenHeader) {
			t.Errorf("Power with %q = %v, want 401", wrong, err)
		}
		if err := c.Console(t.Context(), "node-0", strings.NewReader("x"), &bytes.Buffer{}); !refusedWith(err, http.StatusUnauthorized, "") {
			t.Errorf("Console with %q = %v, want 401", wrong, err)
		}
	}
	if p := l.First().Machine().Power; p != machine.PowerOff {
		t.Errorf("the power is %s", p)
	}
	if _, err := control.DialRemote("127.0.0.1:1", l.CAs(), ""); err == nil {
		t.Error("DialRemote takes an empty token")
	}
}

// The lab shows the hosts of all shards in the order of the definition, with the identities
// and addresses of a lab in one process. Those of a shard that does not run are offline.
func TestFleetListsTheHostsOfAllShards(t *testing.T) {
	l := startShards(t)
	got, err := l.Hosts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := rackfile.Default(6)
	want := control.Hosts(racktest.Start(t, rack.Config{Rack: &r}).Rack)
	if len(got) != len(want) {
		t.Fatalf("%d hosts, want %d", len(got), len(want))
	}
	address := func(h control.Host) string {
		at, _, _ := strings.Cut(strings.TrimPrefix(h.Redfish, "https://"), ":")
		return at
	}
	for i, h := range got[:4] {
		if h.Name != want[i].Name || h.BootMACAddress != want[i].BootMACAddress || address(h) != address(want[i]) || h.Reach != "reachable" {
			t.Errorf("host %d is %+v, want that of %+v", i, h, want[i])
		}
	}
	for i, h := range got[4:] {
		if d := cmp.Diff(control.Host{Name: want[4+i].Name, Profile: "generic", Reach: control.Offline}, h); d != "" {
			t.Errorf("host of a shard that does not run (-want +got):\n%s", d)
		}
	}
	st, err := l.Status(t.Context())
	if err != nil || st.PID != os.Getpid() || st.Hosts != 6 || st.Kubeconfig != "/k" || st.Speed != "60x" || st.Time.IsZero() || len(st.Shards) != 3 || st.Shards[1].State != "up" || st.Shards[2].State != control.ScaledIn {
		t.Errorf("Status() = %+v, %v", st, err)
	}
}

// A request for a host goes to its shard, also one that changes the protocol.
func TestFleetForwardsToTheShardOfTheHost(t *testing.T) {
	l := startShards(t)
	ctx := t.Context()
	if h, err := l.Power(ctx, "node-3", "On"); err != nil || h.Name != "node-3" {
		t.Fatalf("Power = %+v, %v", h, err)
	}
	l.racks[1].Advance(5 * time.Minute)
	if d, err := l.Host(ctx, "node-3"); err != nil || d.Power != "On" || d.Running != "system" {
		t.Errorf("node-3 is %+v, %v, want On", d, err)
	}
	if d, err := l.Host(ctx, "node-0"); err != nil || d.Power != "Off" {
		t.Errorf("node-0 is %+v, %v, want Off", d, err)
	}
	var out strings.Builder
	if err := l.Console(ctx, "node-3", strings.NewReader("root\n"), &out); err != nil || !strings.Contains(out.String(), "login: root\r\nPassword: ") {
		t.Errorf("Console = %v, shows %q", err, out.String())
	}
	if _, err := l.Host(ctx, "node-4"); !refusedWith(err, http.StatusServiceUnavailable, "shard-2 does not run: scaled in") {
		t.Errorf("Host of a shard that does not run = %v", err)
	}
	if _, err := l.Host(ctx, "node-30"); !refusedWith(err, http.StatusNotFound, "Did you mean node-0 or node-3") {
		t.Errorf("Host without a shard = %v", err)
	}
	var lines []string
	err := l.PowerAll(ctx, []string{"node-0", "node-1", "node-2", "node-5", "nobody"}, "On", func(p control.Powered) {
		lines = append(lines, fmt.Sprint(p.Name, " ", p.Host != nil, " ", p.Error))
	})
	slices.Sort(lines)
	want := []string{"nobody false there is no host nobody", "node-0 true ", "node-1 true ", "node-2 true ", "node-5 false shard-2 does not run: " + control.ScaledIn}
	if d := cmp.Diff(want, lines); err != nil || d != "" {
		t.Errorf("PowerAll, %v (-want +got):\n%s", err, d)
	}
}

// A rule has one ID in all shards whose hosts it concerns, and its hits are those of all.
func TestFleetFaultsAreOneListOverShards(t *testing.T) {
	l := startShards(t)
	ctx := t.Context()
	added, err := l.AddFaults(ctx, fault.Rule{Status: 503}, fault.Rule{ID: "mine", BMC: "node-2", Status: 500})
	if err != nil || len(added) != 2 || added[0].ID != "fault-1" {
		t.Fatalf("AddFaults = %+v, %v", added, err)
	}
	for i, want := range [][]string{{"fault-1"}, {"fault-1", "mine"}} {
		var ids []string
		for _, r := range l.racks[i].Faults() {
			ids = append(ids, r.ID)
		}
		if d := cmp.Diff(want, ids); d != "" {
			t.Errorf("rules of shard %d (-want +got):\n%s", i, d)
		}
		resp, err := l.racks[i].Client.Get(l.racks[i].First().URL() + "/redfish/v1/")
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("shard %d answers %s, %v", i, resp.Status, err)
		}
	}
	all, err := l.Faults(ctx)
	if err != nil || len(all) != 2 || all[0].Hits != 2 || all[1].Hits != 1 {
		t.Errorf("Faults() = %+v, %v, want two, with 2 hits and 1", all, err)
	}
	if _, err := l.AddFaults(ctx, fault.Rule{ID: "mine", Status: 500}); !refusedWith(err, http.StatusConflict, "mine") {
		t.Errorf("AddFaults with an ID that is taken = %v", err)
	}
	if _, err := l.AddFaults(ctx, fault.Rule{BMC: "node-4", Status: 500}); !refusedWith(err, http.StatusServiceUnavailable, "shard-2") {
		t.Errorf("AddFaults for a host of a shard that does not run = %v", err)
	}
	if added, err := l.AddFaults(ctx, fault.Rule{Stale: true}); err != nil || added[0].ID != "fault-2" {
		t.Errorf("AddFaults = %+v, %v, want fault-2", added, err)
	}
	if err := l.RemoveFault(ctx, "fault-1"); err != nil {
		t.Error(err)
	}
	if err := l.RemoveFault(ctx, "fault-1"); !refusedWith(err, http.StatusNotFound, "fault-1") {
		t.Errorf("RemoveFault of none = %v", err)
	}
	if n, m := len(l.racks[0].Faults()), len(l.racks[1].Faults()); n != 1 || m != 2 {
		t.Errorf("the shards have %d and %d rules, want 1 and 2", n, m)
	}
}

// The journal is that of all shards by time, and is followed in all of them.
func TestFleetJournalHasAllShards(t *testing.T) {
	l := startShards(t)
	for i, l := range l.racks {
		apply(t, l, machine.Reset{Kind: machine.ResetOn})
		l.Advance(time.Duration(5-i) * time.Minute)
	}
	all, err := l.Journal(t.Context(), control.Question{Kind: "event"})
	if err != nil || !slices.IsSortedFunc(all, func(a, b journal.Entry) int { return a.At.Compare(b.At) }) {
		t.Errorf("Journal(), %v, is not sorted by time: %v", err, all)
	}
	seen := map[string]bool{}
	for _, e := range all {
		seen[e.Host] = true
	}
	if !seen["node-0"] || !seen["node-2"] {
		t.Errorf("entries of %v, want node-0 and node-2", seen)
	}
	if last, err := l.Journal(t.Context(), control.Question{Kind: "event", Last: 3}); err != nil || cmp.Diff(all[len(all)-3:], last) != "" {
		t.Errorf("the last 3 = %v, %v, want %v", last, err, all[len(all)-3:])
	}
	enough := errors.New("enough")
	err = l.Follow(t.Context(), control.Question{Kind: "event"}, func(e journal.Entry) error {
		if delete(seen, e.Host); len(seen) == 0 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("Follow = %v, without entries of %v", err, seen)
	}
}

// Metrics have the label shard.
func TestFleetMetricsNameTheShard(t *testing.T) {
	text, err := startShards(t).Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`metalab_hosts{power="Off",shard="shard-0"} 2`, `metalab_hosts{power="Off",shard="shard-1"} 2`, "# TYPE metalab_hosts gauge"} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("the metrics have %q %d times:\n%s", want, strings.Count(string(text), want), text)
		}
	}
}

// A snapshot is a directory with one for each shard that runs.
func TestFleetSnapshotHasOneForEachShard(t *testing.T) {
	l := startShards(t)
	to := filepath.Join(t.TempDir(), "s")
	info, err := l.SaveSnapshot(t.Context(), to, nil)
	if err != nil || info.Hosts != 4 {
		t.Fatalf("SaveSnapshot = %+v, %v", info, err)
	}
	for _, s := range l.shards[:2] {
		if info, err := snapshot.Open(control.SnapshotOf(to, s.Name)); err != nil || info.Hosts != 2 {
			t.Errorf("snapshot of %s: %+v, %v", s.Name, info, err)
		}
	}
	if _, err := l.SaveSnapshot(t.Context(), to+".tar", nil); !refusedWith(err, http.StatusBadRequest, "name a directory") {
		t.Errorf("SaveSnapshot to a tar file = %v", err)
	}
}

func TestFleetEndsWithDown(t *testing.T) {
	l := startShards(t)
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.ended: // the lab ends once the request is answered
	case <-time.After(10 * time.Second):
		t.Error("Down does not end the lab")
	}
}
