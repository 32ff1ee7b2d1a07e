package main

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/cluster/clustertest"
)

// Commands with --cluster control the lab in a cluster, through the proxy of its API server.
func TestCommandsControlALabInACluster(t *testing.T) {
	t.Setenv("METALAB_STATE", t.TempDir()) // there is no lab
	a := clustertest.Start(t)
	kubeconfig := a.Kubeconfig(t)
	run := func(args ...string) outcome {
		t.Helper()
		var out, err strings.Builder
		root := newRoot()
		root.SetArgs(append(args, "--cluster", "--cluster-namespace", "n", "--cluster-kubeconfig", kubeconfig))
		root.SetOut(&out)
		root.SetErr(&err)
		return outcome{exitStatus(root.ExecuteContext(t.Context()), &err), out.String(), err.String()}
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   string // in the output, or in the error
	}{
		{[]string{"hosts"}, 0, "node-5  generic  BMC offline"},
		{[]string{"host", "power", "node-3", "On"}, 0, "node-3"},
		{[]string{"host", "show", "node-3"}, 0, "serial"},
		{[]string{"fault", "add", "--bmc", "node-1", "--status", "503"}, 0, "fault-1"},
		{[]string{"fault", "ls"}, 0, "fault-1"},
		{[]string{"sel", "ls", "node-2"}, 0, "ID"},
		{[]string{"disk", "ls", "node-0"}, 0, "Disk.0"},
		{[]string{"journal", "--kind", "event"}, 0, "node-3"},
		{[]string{"metrics"}, 0, `shard="racks-1"`},
		{[]string{"status"}, 0, "2 hosts, scaled in"},
		{[]string{"host", "power", "node-5", "On"}, 1, "racks-2 does not run: its pod is not ready (Pending)"},
		{[]string{"host", "power", "node-9"}, 1, "there is no host node-9"},
		{[]string{"down"}, 2, "kubectl scale or kubectl delete ends the shards"},
	} {
		if got := run(tt.args...); got.status != tt.status || !strings.Contains(got.out+got.err, tt.want) {
			t.Errorf("labctl %q exits with %d and prints\n%s%swant %d and %q", tt.args, got.status, got.out, got.err, tt.status, tt.want)
		}
	}
	if p := a.Labs[1].Hosts()[1].Machine().Power; p == "Off" {
		t.Errorf("node-3 is %s", p)
	}
	if rules := a.Labs[0].Faults(); len(rules) != 1 {
		t.Errorf("the first shard has the rules %v", rules)
	}
}
