package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// outcome is what a user sees of a command.
type outcome struct {
	status   int
	out, err string
}

// labctl runs a command in this process, on the lab in a state directory.
func labctl(t *testing.T, state string, args ...string) outcome {
	t.Helper()
	var out, err strings.Builder
	root := newRoot()
	root.SetArgs(append([]string{"--state", state}, args...))
	root.SetOut(&out)
	root.SetErr(&err)
	status := exitStatus(root.ExecuteContext(t.Context()), &err)
	return outcome{status, out.String(), err.String()}
}

// check compares what a user sees of a command with what he should see. In want, the lines
// of out and err have no trailing spaces.
func check(t *testing.T, state string, want outcome, args ...string) {
	t.Helper()
	got := labctl(t, state, args...)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("labctl %q (-want +got):\n%s", args, diff)
	}
}

// A command for several hosts prints those where it succeeded as one table, names each
// other host with its error, and exits with 1.
func TestPowerOfSeveralHosts(t *testing.T) {
	l := startLab(t, 3)
	if err := l.Hosts()[1].Apply(t.Context(), machine.CutAC{}); err != nil {
		t.Fatal(err)
	}
	const why = "not in this power state: reset On without AC power\n"
	for _, tt := range []struct {
		args []string
		want outcome
	}{
		{[]string{"host", "power", "node-*"}, outcome{0, "NAME    POWER\nnode-0  Off\nnode-1  Off\nnode-2  Off\n", ""}},
		{[]string{"host", "power", "node-*", "on"}, outcome{1, "NAME    POWER\nnode-0  PoweringOn\nnode-2  PoweringOn\n", "labctl: node-1: " + why}},
		{[]string{"host", "power", "node-[12]", "On"}, outcome{1, "NAME    POWER\nnode-2  PoweringOn\n", "node-2: its power is PoweringOn already\nlabctl: node-1: " + why}},
		{[]string{"host", "power", "node-1", "On"}, outcome{1, "", "labctl: " + why}},
		{[]string{"host", "power", "node-0", "On"}, outcome{0, "NAME    POWER\nnode-0  PoweringOn\n", "node-0: its power is PoweringOn already\n"}},
		{[]string{"host", "power", "node-1", "ForceOff"}, outcome{0, "NAME    POWER\nnode-1  Off\n", "node-1: its power is Off already\n"}},
		{[]string{"host", "power", "node-0", "ForceOff"}, outcome{0, "NAME    POWER\nnode-0  PoweringOff\n", ""}},
		{[]string{"host", "power", "node-7", "On"}, outcome{1, "", "labctl: there is no host node-7: use one of node-0, node-1, node-2. Did you mean node-0 or node-1 or node-2?\n"}},
		{[]string{"host", "power", "rack-*", "On"}, outcome{1, "", "labctl: no host matches rack-*: use one of node-0, node-1, node-2\n"}},
		{[]string{"host", "power", "node-[", "On"}, outcome{2, "", "labctl: \"node-[\" is no valid pattern: close each [ (see --help)\n"}},
		{[]string{"host", "power"}, outcome{2, "", "labctl: labctl host power needs HOST (see --help)\n"}},
		{[]string{"host", "power", "node-0", "On", "now"}, outcome{2, "", "labctl: labctl host power takes no argument \"now\" (see --help)\n"}},
	} {
		check(t, l.Dir(), tt.want, tt.args...)
	}
	dir := t.TempDir()
	check(t, dir, outcome{1, "", "labctl: no lab is running in " + dir + ": start it with labctl --state " + dir + " up\n"}, "host", "power", "node-*", "On")
}

// In JSON and YAML, results of several hosts are a list of hosts, or an object by host where
// each has a value of its own; a table has the column HOST then.
func TestResultsOfSeveralHostsForPrograms(t *testing.T) {
	l := startLab(t, 3)
	decode := map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(b []byte, into any) error { return yaml.Unmarshal(b, into) },
	}
	for _, format := range slices.Sorted(maps.Keys(decode)) {
		got := labctl(t, l.Dir(), "host", "power", "node-[02]", "-o", format)
		var hosts []control.Host
		if err := decode[format]([]byte(got.out), &hosts); err != nil || len(hosts) != 2 || hosts[0].Name != "node-0" || hosts[1].Power != "Off" {
			t.Errorf("host power -o %s = %+v: %+v, %v, want node-0 and node-2, which are off", format, got, hosts, err)
		}
		got = labctl(t, l.Dir(), "host", "show", "node-[01]", "-o", format)
		var byHost map[string]control.Detail
		if err := decode[format]([]byte(got.out), &byHost); err != nil || len(byHost) != 2 || byHost["node-1"].Name != "node-1" {
			t.Errorf("host show -o %s = %+v: %v, want an object with node-0 and node-1", format, got, err)
		}
		got = labctl(t, l.Dir(), "host", "show", "node-1", "-o", format)
		var one control.Detail
		if err := decode[format]([]byte(got.out), &one); err != nil || one.Name != "node-1" {
			t.Errorf("host show -o %s of one host = %+v: %v, want the host itself", format, got, err)
		}
	}
	table := labctl(t, l.Dir(), "host", "show", "node-[01]").out
	var heads []string
	for line := range strings.Lines(table) {
		heads = append(heads, strings.Fields(line)[0])
	}
	if n := len(heads); n < 5 || heads[0] != "HOST" || slices.Contains(heads[1:], "HOST") || heads[1] != "node-0" || heads[n-1] != "node-1" {
		t.Errorf("host show of two hosts has the first cells %q, want HOST once, then node-0 and node-1", heads)
	}
}

// Rules of faults are shown in full, as a rack file has them, with where they apply.
func TestFaultRulesAreShownInFull(t *testing.T) {
	l := startLab(t, 2)
	check(t, l.Dir(), outcome{0, "ID  WHERE                         RULE\nr1  node-0 PATCH POST /redfish/*  count=2 status=503 retryAfter=30s\n", ""},
		"fault", "add", "--id", "r1", "--bmc", "node-0", "--path", "/redfish/*", "--method", "patch", "--method", "POST", "--status", "503", "--retry-after", "30s", "--count", "2")
	check(t, l.Dir(), outcome{0, "ID  WHERE       RULE\nr2  everywhere  latency=1s\n", ""}, "fault", "add", "--id", "r2", "--latency", "1s")
	check(t, l.Dir(), outcome{0, "ID  PHASE   HITS  WHERE                         RULE\n" +
		"r1  active  0     node-0 PATCH POST /redfish/*  count=2 status=503 retryAfter=30s\n" +
		"r2  active  0     everywhere                    latency=1s\n", ""}, "fault", "ls")
	for _, tt := range []struct{ args, err string }{
		{"fault add", "the rule does nothing: add one of --status,"},
		{"fault add --status 503 --probability 0", "--probability 0: must be above 0 and at most 1"},
		{"fault add --set PowerState", `--set "PowerState": use a form like /PowerState=null`},
		{"fault add --status 503 -f x.yaml", "-f and --status exclude each other: set it in the file"},
		{"fault add --sends ResetType", `--sends "ResetType": use a form like /PowerState=null`},
		{"fault add --status 503 --sends ResetType=On", `--sends: "ResetType": must be a JSON pointer`},
		{"fault add --patch {", "--patch: "},
		{"fault add --retry-after 3s", "--retry-after: "},
		{"fault rm r1 --all", ""},
		{"fault rm", ""},
	} {
		got := labctl(t, l.Dir(), strings.Fields(tt.args)...)
		if got.status != 2 || got.out != "" || !strings.HasPrefix(got.err, "labctl: "+tt.err) || !strings.HasSuffix(got.err, " (see --help)\n") {
			t.Errorf("labctl %s = %+v, want status 2 and %q", tt.args, got, tt.err)
		}
	}
	check(t, l.Dir(), outcome{0, "", ""}, "fault", "rm", "r1")
	check(t, l.Dir(), outcome{0, "ID  PHASE   HITS  WHERE       RULE\nr2  active  0     everywhere  latency=1s\n", ""}, "fault", "ls")
	if got := labctl(t, l.Dir(), "fault", "rm", "r1"); got.status != 1 || !strings.Contains(got.err, "r1") {
		t.Errorf("fault rm of a rule that is gone = %+v, want status 1 and its ID", got)
	}
}

// Each flag of fault add is a field of the rule.
func TestFlagsOfFaultsAreFieldsOfTheRule(t *testing.T) {
	l := startLab(t, 1)
	for i, tt := range []struct{ args, want string }{
		{"--status 503 --after 3 --probability 0.5 --message gone --message-id Base.1.0.X --performed", "after=3 probability=0.5 status=503 message=gone messageID=Base.1.0.X performed=true"},
		{"--offline --from 1m --until 2m", "from=1m0s until=2m0s offline=true"},
		{"--limit 10/s", "limit=10/s"},
		{"--drop reset", "drop=reset"},
		{"--tls expired", "tls=expired"},
		{"--stale", "stale=true"},
		{"--stuck", "stuck=true"},
		{"--truncate 50%", "truncate=50%"},
		{"--invalid-json", "invalidJSON=true"},
		{"--length-error -3", "lengthError=-3"},
		{`--patch {"Name":"x"}`, `patch={"Name":"x"}`},
		{"--set /PowerState=null --set /Name=x", `set={"/Name":"x","/PowerState":null}`},
		{"--body text --content-type text/plain", "body=text contentType=text/plain"},
		{"--wire late --latency 1s --method in", "latency=1s wire=late"},
		{"--code 0xc0 --path /ipmi/00/02", "code=192"},
	} {
		got := labctl(t, l.Dir(), append([]string{"fault", "add", "--id", fmt.Sprint("r", i), "-o", "wide"}, strings.Fields(tt.args)...)...)
		lines := strings.Split(got.out, "\n")
		if got.status != 0 || len(lines) != 3 || !strings.HasSuffix(lines[1], "  "+tt.want) {
			t.Errorf("fault add %s = %+v, want the rule %s", tt.args, got, tt.want)
		}
	}
}

// A log is listed by host, and a wide table has the column KIND.
func TestLogsOfSeveralHosts(t *testing.T) {
	l := startLab(t, 2)
	for _, h := range l.Hosts() {
		if err := h.Power(t.Context(), "On"); err != nil {
			t.Fatal(err)
		}
	}
	l.Advance(5 * time.Minute)
	for format, want := range map[string]string{"table": "HOST ID TIME SEVERITY SUBJECT TEXT", "wide": "HOST ID TIME SEVERITY KIND SUBJECT TEXT"} {
		lines := strings.Split(labctl(t, l.Dir(), "sel", "ls", "node-*", "-o", format).out, "\n")
		if got := strings.Join(strings.Fields(lines[0]), " "); got != want || len(lines) < 4 {
			t.Errorf("sel ls -o %s has the columns %s and %d lines, want %s and entries", format, got, len(lines), want)
		}
		for i, line := range lines[1 : len(lines)-1] {
			if !strings.HasPrefix(line, "node-") {
				t.Errorf("line %d of sel ls -o %s is %q, want one of a host", i+2, format, line)
			}
		}
	}
	check(t, l.Dir(), outcome{}, "sel", "clear", "node-*")
	var logs map[string][]control.LogEntry
	got := labctl(t, l.Dir(), "sel", "ls", "node-*", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &logs); err != nil || len(logs) != 2 || len(logs["node-0"]) > 1 {
		t.Errorf("sel ls after clear = %+v, %v, want two logs with the entry of their clearing at most", got, err)
	}
}

// The shell completes names of hosts, what follows them, and nothing where no lab runs.
func TestCompletion(t *testing.T) {
	l := startLab(t, 2)
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"host power", []string{"node-0", "node-1"}},
		{"host power node-0", resetTypes},
		{"host show node-0", nil},
		{"hosts --output", formats},
		{"fault add --bmc", []string{"node-0", "node-1"}},
	} {
		got := labctl(t, l.Dir(), append(append([]string{"__complete", "--state", l.Dir()}, strings.Fields(tt.args)...), "")...)
		lines := strings.Split(strings.TrimSpace(got.out), "\n")
		if names := lines[:len(lines)-1]; got.status != 0 || !slices.Equal(names, tt.want) && len(names)+len(tt.want) > 0 { // the last line is the directive
			t.Errorf("completion after %q = %q, %q, want %q", tt.args, names, got.err, tt.want)
		}
	}
	got := labctl(t, t.TempDir(), "__complete", "--state", t.TempDir(), "host", "power", "")
	if got.status != 0 || strings.Contains(got.out, "node") {
		t.Errorf("completion without a lab = %+v, want nothing", got)
	}
}

// The exit status is 2 for a wrong command line, a program's own status where labctl ran
// one, and 1 for all other errors.
func TestExitStatus(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		text   string
	}{
		{nil, 0, ""},
		{errors.New("open: no room"), 1, "labctl: open: no room\n"},
		{usage.New(errors.New("--speed 0x: use 1x or more")), 2, "labctl: --speed 0x: use 1x or more (see --help)\n"},
		{fmt.Errorf("host: %w", usage.New(errors.New("no"))), 2, "labctl: host: no (see --help)\n"},
		{exitCode(7), 7, ""},
		{fmt.Errorf("exec: %w", exitCode(126)), 126, ""},
	} {
		var w strings.Builder
		if got := exitStatus(tt.err, &w); got != tt.status || w.String() != tt.text {
			t.Errorf("exitStatus(%v) = %d, %q, want %d, %q", tt.err, got, w.String(), tt.status, tt.text)
		}
	}
}

// The directory of the lab is that of --state, of METALAB_STATE, or one of the user.
func TestStateDirectory(t *testing.T) {
	for _, tt := range []struct {
		flag, env, xdg, home string
		want, err            string
	}{
		{flag: "/a/flag", env: "/b", xdg: "/c", home: "/d", want: "/a/flag"},
		{env: "/b/env", xdg: "/c", home: "/d", want: "/b/env"},
		{xdg: "/c", home: "/d", want: "/c/metalab"},
		{xdg: "relative", home: "/d", want: "/d/.local/state/metalab"}, // XDG Base Directory 0.8 ignores relative paths
		{home: "/d", want: "/d/.local/state/metalab"},
		{err: "name a directory with --state"},
	} {
		t.Setenv("METALAB_STATE", tt.env)
		t.Setenv("XDG_STATE_HOME", tt.xdg)
		t.Setenv("HOME", tt.home)
		o := options{state: tt.flag}
		err := o.resolve(nil)
		if tt.err != "" {
			if err == nil || !strings.HasSuffix(err.Error(), tt.err) {
				t.Errorf("resolve of %+v: %v, want %q", tt, err, tt.err)
			}
			continue
		}
		if err != nil || o.state != tt.want || o.explicit != (tt.flag != "") {
			t.Errorf("resolve of %+v = %q, %v, explicit %t, want %q", tt, o.state, err, o.explicit, tt.want)
		}
	}
}
