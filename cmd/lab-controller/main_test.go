package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/cmd/usage"
	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/version"
)

// parse runs the command and returns the options that its work gets.
func parse(t *testing.T, args ...string) (got options, err error) {
	t.Helper()
	c := newCommand(func(_ context.Context, o options) error {
		got = o
		return nil
	})
	c.SetArgs(args)
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	return got, c.ExecuteContext(t.Context())
}

func TestVersionCommandAndFlagPrintTheSameLine(t *testing.T) {
	var lines []string
	for _, arg := range []string{"version", "--version"} {
		var out strings.Builder
		c := newCommand(func(context.Context, options) error {
			t.Errorf("lab-controller %s runs the controllers", arg)
			return nil
		})
		c.SetArgs([]string{arg})
		c.SetOut(&out)
		if err := c.ExecuteContext(t.Context()); err != nil {
			t.Fatalf("lab-controller %s = %v", arg, err)
		}
		lines = append(lines, out.String())
	}
	if want := "lab-controller " + version.Read().String() + "\n"; lines[0] != want || lines[1] != want {
		t.Errorf("version and --version print %q, want %q", lines, want)
	}
}

func TestEndpoints(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		args                  []string
		agents, media, secure manager.Endpoint
	}{
		{
			name:   "an address alone",
			args:   []string{"--provisioning-address", "192.0.2.5"},
			agents: manager.Endpoint{URL: "https://192.0.2.5:6385", Address: "192.0.2.5:6385"},
			media:  manager.Endpoint{URL: "http://192.0.2.5:6386", Address: "192.0.2.5:6386"},
			secure: manager.Endpoint{URL: "https://192.0.2.5:6387", Address: "192.0.2.5:6387"},
		},
		{
			name:   "with a port",
			args:   []string{"--provisioning-address=192.0.2.5:7000"},
			agents: manager.Endpoint{URL: "https://192.0.2.5:7000", Address: "192.0.2.5:7000"},
			media:  manager.Endpoint{URL: "http://192.0.2.5:7001", Address: "192.0.2.5:7001"},
			secure: manager.Endpoint{URL: "https://192.0.2.5:7002", Address: "192.0.2.5:7002"},
		},
		{
			name:   "IPv6, as a node's address is given to a pod",
			args:   []string{"--provisioning-address=2001:db8::5"},
			agents: manager.Endpoint{URL: "https://[2001:db8::5]:6385", Address: "[2001:db8::5]:6385"},
			media:  manager.Endpoint{URL: "http://[2001:db8::5]:6386", Address: "[2001:db8::5]:6386"},
			secure: manager.Endpoint{URL: "https://[2001:db8::5]:6387", Address: "[2001:db8::5]:6387"},
		},
		{
			name:   "an address that moves from machine to machine",
			args:   []string{"--provisioning-address=[2001:db8::5]:7000", "--listen=[::]:8000"},
			agents: manager.Endpoint{URL: "https://[2001:db8::5]:7000", Address: "[::]:8000"},
			media:  manager.Endpoint{URL: "http://[2001:db8::5]:7001", Address: "[::]:8001"},
			secure: manager.Endpoint{URL: "https://[2001:db8::5]:7002", Address: "[::]:8002"},
		},
		{
			name:   "without HTTPS for media",
			args:   []string{"--provisioning-address=192.0.2.5", "--media-https=false"},
			agents: manager.Endpoint{URL: "https://192.0.2.5:6385", Address: "192.0.2.5:6385"},
			media:  manager.Endpoint{URL: "http://192.0.2.5:6386", Address: "192.0.2.5:6386"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := parse(t, tt.args...)
			if err != nil {
				t.Fatalf("lab-controller %v: %v", tt.args, err)
			}
			agents, media, secure := o.endpoints()
			if diff := cmp.Diff([]manager.Endpoint{tt.agents, tt.media, tt.secure}, []manager.Endpoint{agents, media, secure}); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetricsAndHealthListenOnLoopbackByDefault(t *testing.T) {
	o, err := parse(t, "--provisioning-address=192.0.2.5")
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"metrics": o.metrics, "health": o.health} {
		if !strings.HasPrefix(at, "127.0.0.1:") {
			t.Errorf("%s address = %s, want one on loopback", name, at)
		}
	}
	if !o.elect || o.leaseDuration != 15*time.Second || o.namespace != defaultNamespace {
		t.Errorf("election %v, %s, in %s, want one in %s", o.elect, o.leaseDuration, o.namespace, defaultNamespace)
	}
	o, err = parse(t, "--provisioning-address=192.0.2.5", "--metrics-address=0", "--health-address=0")
	if err != nil || o.metrics != "" || o.health != "" {
		t.Errorf("with 0 for both: metrics at %q, health at %q, %v, want neither", o.metrics, o.health, err)
	}
}

func TestInvalidFlagsNameTheFix(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "--provisioning-address is missing"},
		{"--provisioning-address=node-1", `--provisioning-address "node-1": use IP or IP:PORT`},
		{"--provisioning-address=0.0.0.0", "servers cannot reach that"},
		{"--provisioning-address=192.0.2.5 --elemental-url=https://192.0.2.5", "need the controller elemental: add it to --controllers"},
		{"--provisioning-address=192.0.2.5 --compat-claims", "need the controller elemental"},
		{"--provisioning-address=192.0.2.5 --controllers=elemental --elemental-url=http://192.0.2.5", `--elemental-url "http://192.0.2.5": use https://HOST[:PORT]`},
		{"--provisioning-address=192.0.2.5 --controllers=elemental --elemental-url=https://0.0.0.0:1", "servers cannot reach that"},
		{"--provisioning-address=192.0.2.5 --controllers=elemental --elemental-listen=node-1", `--elemental-listen "node-1": use IP:PORT`},
		{"--provisioning-address=192.0.2.5:65533 --controllers=elemental", "use a port from 1 to 65532"},
		{"--provisioning-address=[::]:7000", "servers cannot reach that"},
		{"--provisioning-address=224.0.0.1", "use an address that servers can reach"},
		{"--provisioning-address=fe80::1%eth0", "use an address that servers can reach"},
		{"--provisioning-address=192.0.2.5:0", "use a port from 1 to 65533"},
		{"--provisioning-address=192.0.2.5:65534", "use a port from 1 to 65533"},
		{"--provisioning-address=192.0.2.5 --media-https=false --media-certificate=x", "--media-certificate needs HTTPS"},
		{"--provisioning-address=192.0.2.5:70000", "use IP or IP:PORT"},
		{"--provisioning-address=192.0.2.5 --listen=x", `--listen "x": use IP or IP:PORT`},
		{"--provisioning-address=192.0.2.5 --controllers=host,gost", `there is no controller "gost": use some of host`},
		{"--provisioning-address=192.0.2.5 --controllers=", "no controller is selected: use some of host"},
		{"--provisioning-address=192.0.2.5 --controller-concurrency=0", "--controller-concurrency 0: use 1 or more"},
		{"--provisioning-address=192.0.2.5 --concurrency=0", "--controller-concurrency 0: use 1 or more"},
		{"--provisioning-address=192.0.2.5 --kube-api-qps=-1", "--kube-api-qps -1, --kube-api-burst 30: use 1 or more of both"},
		{"--provisioning-address=192.0.2.5 --kube-api-burst=0", "--kube-api-qps 20, --kube-api-burst 0: use 1 or more of both"},
		{"--provisioning-address=192.0.2.5 --provisioning-limit=0", "--provisioning-limit 0: use 1 or more, or -1"},
		{"--provisioning-address=192.0.2.5 --lease-duration=1s", "--lease-duration 1s: use 3s or more"},
		{"--provisioning-address=192.0.2.5 --watch-namespaces=", "--watch-namespaces names no namespace: leave it out to watch all"},
		{"--provisioning-address=192.0.2.5 --watch-namespaces=a,B", `--watch-namespaces: "B" is not the name of a namespace`},
		{"--provisioning-address=192.0.2.5 --watch-namespaces=a,,b", `--watch-namespaces: "" is not the name of a namespace`},
		{"--provisioning-address=192.0.2.5 --machine-api-url=http://192.0.2.9:6443", `--machine-api-url "http://192.0.2.9:6443": use https://HOST[:PORT][/PATH]`},
		{"--provisioning-address=192.0.2.5 --machine-api-url=192.0.2.9:6443", "use https://HOST[:PORT][/PATH]"},
		{"--provisioning-address=192.0.2.5 --machine-api-url=https://[::]:6443", "machines cannot reach that: name an address of the API"},
		{"--provisioning-address=192.0.2.5 host", `lab-controller has no command "host"`},
		{"--provisioning-addr=192.0.2.5", "unknown flag: --provisioning-addr"},
	} {
		if _, err := parse(t, strings.Fields(tt.args)...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("lab-controller %s: %v, want %q in it", tt.args, err, tt.want)
		}
		if _, err := parse(t, strings.Fields(tt.args)...); !usage.Is(err) {
			t.Errorf("lab-controller %s: %T, want a usage error, which exits with 2", tt.args, err)
		}
	}
}

// B-07 B-73: the limits of upstream's controller, and where they come from.
func TestLimitsComeFromFlagsTheEnvironmentOrUpstreamsDefaults(t *testing.T) {
	processors := manager.DefaultWorkers(runtime.NumCPU())
	for _, tt := range []struct {
		concurrency, limit string // values in the environment
		args               string
		want               manager.Config
	}{
		{"", "", "", manager.Config{Workers: processors, Limit: 20, Requests: manager.RequestLimit{PerSecond: 20, Burst: 30}}},
		{"5", "7", "", manager.Config{Workers: 5, Limit: 7, Requests: manager.RequestLimit{PerSecond: 20, Burst: 30}}},
		{"5", "7", "--controller-concurrency=3 --provisioning-limit=-1 --kube-api-qps=0", manager.Config{Workers: 3, Limit: -1, Requests: manager.RequestLimit{Burst: 30}}},
		{"", "", "--concurrency=3 --kube-api-qps=50 --kube-api-burst=60", manager.Config{Workers: 3, Limit: 20, Requests: manager.RequestLimit{PerSecond: 50, Burst: 60}}},
	} {
		t.Setenv(concurrencyEnv, tt.concurrency)
		t.Setenv(limitEnv, tt.limit)
		o, err := parse(t, append(strings.Fields(tt.args), "--provisioning-address=192.0.2.5")...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		got := manager.Config{Workers: o.concurrency, Limit: o.limit, Requests: o.requests}
		if got.Workers != tt.want.Workers || got.Limit != tt.want.Limit || got.Requests != tt.want.Requests {
			t.Errorf("BMO_CONCURRENCY=%s PROVISIONING_LIMIT=%s lab-controller %s: %+v, want %+v", tt.concurrency, tt.limit, tt.args, got, tt.want)
		}
	}
	for env, want := range map[string]string{concurrencyEnv: "BMO_CONCURRENCY=many in the environment is no number", limitEnv: "PROVISIONING_LIMIT=many"} {
		t.Run(env, func(t *testing.T) {
			t.Setenv(env, "many")
			if _, err := parse(t, "--provisioning-address=192.0.2.5"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s=many: %v, want %q in it", env, err, want)
			}
		})
	}
}

func TestWatchedNamespacesComeFromTheFlagOrTheEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env, args string
		want      []string
	}{
		{"", "", nil}, // all
		{"", "--watch-namespaces=east,west,east", []string{"east", "west"}},
		{"north, south", "", []string{"north", "south"}},
		{"north", "--watch-namespaces=east", []string{"east"}},
	} {
		t.Setenv(watchEnv, tt.env)
		o, err := parse(t, append(strings.Fields(tt.args), "--provisioning-address=192.0.2.5")...)
		if err != nil || !slices.Equal(o.watched, tt.want) {
			t.Errorf("WATCH_NAMESPACE=%q lab-controller %s: watches %q, %v, want %q", tt.env, tt.args, o.watched, err, tt.want)
		}
	}
	t.Setenv(watchEnv, "north,*")
	if _, err := parse(t, "--provisioning-address=192.0.2.5"); err == nil || !strings.Contains(err.Error(), `WATCH_NAMESPACE in the environment: "*" is not`) {
		t.Errorf("WATCH_NAMESPACE=north,*: %v, want an error that names the variable", err)
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.9:6443"}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
`

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	good, none := file(t, kubeconfig), filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		name, flag, env string
		fails           string
	}{
		{name: "a flag", flag: good},
		{name: "a flag, whatever the environment says", flag: good, env: none},
		{name: "the environment, of several files", env: none + string(os.PathListSeparator) + good},
		{name: "neither", fails: "this process does not run in a pod of a cluster: give --kubeconfig"},
		{name: "a file that does not exist", flag: none, fails: "--kubeconfig " + none},
		{name: "an invalid kubeconfig", flag: file(t, "{"), fails: "--kubeconfig"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.env)
			o := options{kubeconfig: tt.flag}
			c, err := o.cluster()
			switch {
			case tt.fails != "":
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("cluster() error = %v, want %q in it", err, tt.fails)
				}
			case err != nil || c.Host != "https://192.0.2.9:6443":
				t.Errorf("cluster() = %+v, %v, want that of the file", c, err)
			}
		})
	}
}

func TestTrust(t *testing.T) {
	if pool, err := (&options{}).trust(); pool != nil || err != nil {
		t.Errorf("without a file: %v, %v, want the system's", pool, err)
	}
	for _, name := range []string{file(t, "no PEM"), filepath.Join(t.TempDir(), "none")} {
		if _, err := (&options{ca: name}).trust(); err == nil || !strings.Contains(err.Error(), "--ca") {
			t.Errorf("trust(%s) error = %v, want one of --ca", name, err)
		}
	}
}

func TestCertificateForBMCs(t *testing.T) {
	if c, err := (&options{}).mediaCertificate(); c != nil || err != nil {
		t.Errorf("without a file: %v, %v, want the controller's own", c, err)
	}
	for _, name := range []string{file(t, "no PEM"), filepath.Join(t.TempDir(), "none")} {
		if _, err := (&options{certificate: name}).mediaCertificate(); err == nil || !strings.Contains(err.Error(), "--media-certificate") {
			t.Errorf("mediaCertificate(%s) error = %v, want one of --media-certificate", name, err)
		}
	}
}

func TestFlagsSetOptions(t *testing.T) {
	o, err := parse(t, "--provisioning-address=192.0.2.5", "--namespace=infra", "--leader-elect=false", "--identity-secret=id", "--agent-image=/image",
		"--build-preprov-image", "--module-index=https://modules.example/index.yaml", "--machine-api-url=https://api.example:6443", "--machine-api-ca=/ca.pem", "--verbose")
	if err != nil {
		t.Fatal(err)
	}
	for flag, is := range map[string]bool{
		"namespace": o.namespace == "infra", "leader-elect": !o.elect, "identity-secret": o.identity == "id", "agent-image": o.image == "/image",
		"build-preprov-image": o.preprov, "module-index": o.moduleIndex == "https://modules.example/index.yaml",
		"machine-api-url": o.machineAPI == "https://api.example:6443", "machine-api-ca": o.machineAPICA == "/ca.pem", "verbose": o.verbose,
	} {
		if !is {
			t.Errorf("--%s has no effect: %+v", flag, o)
		}
	}
}

func TestCertificatesOfTheMachinesAPI(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty.pem": "", "text.pem": "no certificate"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, want string }{
		{"empty.pem", "the file has no PEM certificate"}, {"text.pem", "the file has no PEM certificate"}, {"none.pem", "no such file"},
	} {
		o := options{machineAPICA: filepath.Join(dir, tt.name)}
		if _, err := o.machineCA(); err == nil || !strings.Contains(err.Error(), "--machine-api-ca") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if ca, err := (&options{}).machineCA(); ca != nil || err != nil {
		t.Errorf("without the flag: %q, %v", ca, err)
	}
}

func TestElementalAPI(t *testing.T) {
	id := inband.Identity{CA: "the controller's authority"}
	for _, tt := range []struct {
		name string
		args []string
		want *manager.Elemental
	}{
		{"not selected", nil, nil},
		{"beside the agents", []string{"--controllers=elemental"}, &manager.Elemental{
			Endpoint: manager.Endpoint{URL: "https://192.0.2.5:6388", Address: "192.0.2.5:6388"}, CA: id.CA,
		}},
		{"behind a name", []string{"--controllers=elemental", "--elemental-url=https://register.example.org", "--elemental-listen=0.0.0.0:443", "--compat-claims", "--compat-labels"}, &manager.Elemental{
			Endpoint: manager.Endpoint{URL: "https://register.example.org", Address: "0.0.0.0:443"}, CA: id.CA, CompatClaims: true, CompatLabels: true,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := parse(t, append([]string{"--provisioning-address=192.0.2.5"}, tt.args...)...)
			if err != nil {
				t.Fatalf("lab-controller %v: %v", tt.args, err)
			}
			got, err := o.elemental.config(o.controllers, o.at, o.listenAddr, id)
			if err != nil {
				t.Fatalf("lab-controller %v: %v", tt.args, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lab-controller %v: API (-want +got):\n%s", tt.args, diff)
			}
		})
	}
}

// lab-controller refuses a wrong command line as labctl does, and suggests the nearest name.
func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"prob":                         `lab-controller has no command "prob". Did you mean probe?`,
		"vresion":                      `lab-controller has no command "vresion". Did you mean version?`,
		"version now":                  `lab-controller version takes no argument "now"`,
		"--provisionign-address 1.2.3": "unknown flag: --provisionign-address. Did you mean --provisioning-address?",
		"--lease-duration soon":        `--lease-duration "soon" is not a duration, such as 30s or 5m`,
		"--provisioning-address 1.2.3": `--provisioning-address "1.2.3": use IP or IP:PORT`,
	} {
		c := newCommand(func(context.Context, options) error { return nil })
		c.SetArgs(strings.Fields(line))
		c.SetOut(io.Discard)
		if err := c.ExecuteContext(t.Context()); !usage.Is(err) || err.Error() != want+" (see --help)" {
			t.Errorf("lab-controller %s: %v, want %q", line, err, want)
		}
	}
}
