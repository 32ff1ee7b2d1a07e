package lcm

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metalab-dev/metalab/agent/kubeapi"
)

const configText = "server: https://192.0.2.1:6443\ncaFile: /etc/lab-agent/ca.crt\ntokenFile: /etc/lab-agent/token\nnamespace: default\nmachine: worker-0\n"

// statement H41: the args of agentConfig hold after the upgrade. Arguments that the program
// does not know are ignored: the agent must start.
func TestParseArgs(t *testing.T) {
	account := Account{Account: kubeapi.Account{Server: "https://192.0.2.1:6443", CAFile: "/etc/lab-agent/ca.crt", TokenFile: "/etc/lab-agent/token"}, Namespace: "default", Machine: "worker-0"}
	other := account
	other.Machine = "worker-1"
	for _, tt := range []struct {
		name, state string
		args        []string
		want        Options
		ignored     string // part of the reason
	}{
		{"file alone", "", nil, Options{Account: account, Config: ConfigFile}, ""},
		{"flags go before the file", "", []string{"--machine", "worker-1", "--keep-user"}, Options{Account: other, Config: ConfigFile, KeepUser: true}, ""},
		{
			"a flag for each line of the file", "",
			[]string{"--server", "https://192.0.2.2", "--ca-file", "/ca", "--token-file", "/token", "--namespace", "lab", "--machine", "worker-2"},
			Options{Account: Account{Account: kubeapi.Account{Server: "https://192.0.2.2", CAFile: "/ca", TokenFile: "/token"}, Namespace: "lab", Machine: "worker-2"}, Config: ConfigFile}, "",
		},
		{"args of an upgrade", `{"args":["--poll","2m","--machine=x"]}`, []string{"--machine", "worker-1"}, Options{Account: other, Config: ConfigFile, Poll: 2 * time.Minute}, ""},
		{"args of a later version", `{"args":["--poll","2m","--colour"]}`, nil, Options{Account: account, Config: ConfigFile}, "unknown flag: --colour"},
		{"damaged state", `{`, nil, Options{Account: account, Config: ConfigFile}, stateFile},
		{"another file", "", []string{"--config=/opt/lcm.yaml"}, Options{Account: other, Config: "/opt/lcm.yaml"}, ""},
	} {
		s := newServer(t)
		s.write(t, ConfigFile, configText, 0o600)
		s.write(t, "/opt/lcm.yaml", strings.Replace(configText, "worker-0", "worker-1", 1), 0o600)
		if tt.state != "" {
			s.write(t, stateFile, tt.state, 0o600)
		}
		got, err := ParseArgs(tt.args, s)
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Options{}, "Ignored")); diff != "" || err != nil {
			t.Errorf("%s: ParseArgs error = %v (-want +got):\n%s", tt.name, err, diff)
		}
		if (got.Ignored == nil) != (tt.ignored == "") || got.Ignored != nil && !strings.Contains(got.Ignored.Error(), tt.ignored) {
			t.Errorf("%s: Ignored = %v, want %q", tt.name, got.Ignored, tt.ignored)
		}
	}
}

func TestParseArgsRefuses(t *testing.T) {
	for _, tt := range []struct {
		file string
		args []string
		want string
	}{
		{"", nil, `server "": give the https URL`},
		{"server: [", nil, ConfigFile + ": "},
		{"sever: a", nil, "field sever not found"},
		{configText, []string{"--config", "/none"}, "configuration: "},
		{configText, []string{"worker-0"}, `argument "worker-0"`},
		{configText, []string{"--masheen", "a"}, "unknown flag"},
		{configText, []string{"--namespace", "a/b"}, `namespace "a/b"`},
	} {
		s := newServer(t)
		if tt.file != "" {
			s.write(t, ConfigFile, tt.file, 0o600)
		}
		if got, err := ParseArgs(tt.args, s); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseArgs(%q) = %+v, %v, want %q", tt.args, got, err, tt.want)
		}
	}
}

func TestUnitStartsTheCommand(t *testing.T) {
	s := newServer(t)
	s.write(t, ConfigFile, configText, 0o600)
	for line := range strings.Lines(Unit) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=/usr/local/bin/lab-agent lcm "); ok {
			if _, err := ParseArgs(strings.Fields(command), s); err != nil {
				t.Errorf("the unit's command: %v", err)
			}
			return
		}
	}
	t.Error("the unit starts no lab-agent lcm")
}
