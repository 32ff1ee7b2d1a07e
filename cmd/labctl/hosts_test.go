package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// startControl starts a lab with hosts node-0, node-1, … and its control API.
func startControl(t *testing.T, count int) *control.Client {
	t.Helper()
	return control.NewClient(startLab(t, count).Dir())
}

// startLab starts a lab with hosts node-0, node-1, … whose control API is served.
func startLab(t *testing.T, count int) *racktest.Rack {
	t.Helper()
	l := racktest.Start(t, rack.Config{Rack: new(rackfile.Default(count))})
	s, err := control.New(control.Config{Rack: l.Rack})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); serving.Wait() })
	return l
}

// Names and patterns select hosts in the order of the rack; what selects none is an error
// that names the nearest or the command that lists them.
func TestMatchingSelectsHosts(t *testing.T) {
	c := startControl(t, 12)
	for _, tt := range []struct {
		pattern string
		want    []string
		err     string
	}{
		{pattern: "node-3", want: []string{"node-3"}},
		{pattern: "node-[01]", want: []string{"node-0", "node-1"}},
		{pattern: "node-1?", want: []string{"node-10", "node-11"}},
		{pattern: "*-9", want: []string{"node-9"}},
		{pattern: "node-33", err: "there is no host node-33: use one of node-0, node-1, node-2, node-3, node-4, node-5, node-6, node-7 and 4 more. Did you mean node-3"},
		{pattern: "rack-*", err: "no host matches rack-*: use one of node-0, node-1, node-2, node-3, node-4, node-5, node-6, node-7 and 4 more"},
		{pattern: "node-[", err: `"node-[" is no valid pattern: close each [`},
	} {
		got, err := matching(t.Context(), c, tt.pattern)
		if tt.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("matching(%s) error = %v, want %q", tt.pattern, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("matching(%s), error %v (-want +got):\n%s", tt.pattern, err, diff)
		}
	}
	if all, err := matching(t.Context(), c, "*"); err != nil || len(all) != 12 || all[10] != "node-10" {
		t.Errorf("matching(*) = %v, %v, want all in the rack's order", all, err)
	}
}

// A command for one host takes a pattern that selects one, and names some of several.
func TestOneRefusesSeveralHosts(t *testing.T) {
	c := startControl(t, 12)
	if got, err := one(t.Context(), c, "*-9"); err != nil || got != "node-9" {
		t.Errorf("one(*-9) = %q, %v", got, err)
	}
	_, err := one(t.Context(), c, "node-*")
	wrong := new(usage.Error)
	if want := "node-* matches 12 hosts, and this command takes one: node-0, node-1, node-2, node-3, node-4 and 7 more"; !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("one(node-*) = %v, want a usage error %q", err, want)
	}
}

// Bulk work runs for every host that a pattern selects, at most sixteen at a time. It
// returns the results of those where it succeeded, in the rack's order, and an error of
// each other host with its name.
func TestForEachReturnsResultsInOrderAndAllErrors(t *testing.T) {
	c := startControl(t, 40)
	var now, most atomic.Int64
	var progress strings.Builder
	got, err := forEach(t.Context(), c, "node-*", &progress, func(host string) (string, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		if strings.HasSuffix(host, "7") {
			return "", errors.New("it is dark")
		}
		return "done " + host, nil
	})
	var want, gotHosts []string
	for i := range 40 {
		if i%10 != 7 {
			want = append(want, fmt.Sprintf("done node-%d", i))
		}
	}
	for _, r := range got {
		if r.value != "done "+r.host {
			t.Errorf("host %s has the result %q", r.host, r.value)
		}
		gotHosts = append(gotHosts, r.value)
	}
	if !slices.Equal(gotHosts, want) {
		t.Errorf("results %v, want %v", gotHosts, want)
	}
	if err == nil || err.Error() != "node-7: it is dark\nnode-17: it is dark\nnode-27: it is dark\nnode-37: it is dark" {
		t.Errorf("error = %v, want one line for each host that failed", err)
	}
	if n := most.Load(); n > atOnce {
		t.Errorf("%d hosts at a time, want at most %d", n, atOnce)
	}
}

// Without a pattern nobody asks for the list of hosts: the lab itself refuses a name that
// it does not know, and the error has no prefix.
func TestForEachWithAName(t *testing.T) {
	c := control.NewClient(t.TempDir()) // no lab
	got, err := forEach(t.Context(), c, "node-0", nil, func(host string) (string, error) { return host, nil })
	if err != nil || len(got) != 1 || got[0].host != "node-0" {
		t.Errorf("forEach(node-0) = %v, %v", got, err)
	}
	bad := errors.New("refused")
	if _, err = forEach(t.Context(), c, "node-0", nil, func(string) (string, error) { return "", bad }); err == nil || err.Error() != "refused" {
		t.Errorf("forEach(node-0) error = %v, want %v", err, bad)
	}
	if _, err = forEach(t.Context(), c, "node-*", nil, func(string) (string, error) { return "", nil }); !errors.Is(err, control.ErrNoLab) {
		t.Errorf("forEach(node-*) without a lab = %v, want %v", err, control.ErrNoLab)
	}
}

// The table has the addresses of both protocols. A BMC may serve no IPMI; of the hosts of a shard
// that does not run nothing is known.
func TestHostsShowBothProtocols(t *testing.T) {
	rows := hostRows([]control.Host{
		{Name: "a", Reach: "reachable", Redfish: "https://127.64.0.1:8443/redfish/v1/", IPMI: "127.64.0.1:6230"},
		{Name: "b", Reach: "reachable", Redfish: "https://127.64.0.2:8443/redfish/v1/"},
		{Name: "c", Reach: control.Offline},
	})
	at := slices.IndexFunc(rows[0], func(name string) bool { return strings.HasSuffix(name, "IPMI") })
	var got []string
	for _, row := range rows[1:] {
		got = append(got, row[at])
	}
	if want := []string{"127.64.0.1:6230", "off", ""}; !slices.Equal(got, want) {
		t.Errorf("IPMI is %q, want %q", got, want)
	}
}
