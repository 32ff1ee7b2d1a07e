package containers

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// kubeconfig is the path of labctl kube's kubeconfig in its volume.
const kubeconfig = "/kube/kubeconfig"

// disruption is how long a disruption takes, in real time: the controller's clock is the real
// one, and a controller that is paused loses its lease of 3 s.
const disruption = 10 * time.Second

// holdID is the ID of the fault that holds a deployment.
const holdID = "hold"

// deployedLab is a rack, a Kubernetes API and a controller in containers.
type deployedLab struct {
	t       *testing.T
	e       *engine
	api     *container
	rack    *container
	control *container
	image   string // its URL
	state   string // volume of the rack
	objects string // volume of the API
	serial  int    // number of the last controller
}

// startLab starts the containers and waits until all hosts are available. The rack's
// clock runs at 20x and the controller's at 1x, so that a deployment takes some
// seconds.
func startLab(t *testing.T, hosts int) *deployedLab {
	t.Helper()
	e := newEngine(t)
	s := &deployedLab{t: t, e: e, state: e.volume("rack"), objects: e.volume("api")}
	s.api = e.run("api", 3, []string{s.objects + ":/var/lib/metalab", s.state + ":/rack:ro"},
		"labctl", "kube", "--listen", e.subnet+"3:6443")
	s.rack = e.run("rack", 2, []string{s.state + ":/var/lib/metalab"},
		"labctl", "up", "--no-kube", "--hosts", fmt.Sprint(hosts), "--listen", e.subnet+"2:9000", "--speed", "20x")
	s.eventually("the API and the rack answer", func() error {
		if _, err := s.rack.exec("labctl", "status"); err != nil {
			return err
		}
		if !strings.Contains(s.api.logs(), kubeconfig) { // it says so when it is ready
			return errors.New("the API is not ready")
		}
		return nil
	})
	s.mustKubectl("create", "namespace", "metalab-system")
	var status struct {
		Images string `json:"images"`
	}
	s.decode(s.rack.must("labctl", "status", "-o", "json"), &status)
	s.image = status.Images + "metalab-demo.img"
	s.startController()
	s.mustKubectl("apply", "-f", "/rack/hosts.yaml")
	s.mustKubectl("wait", "bmh", "--all", "--for=jsonpath={.status.provisioning.state}=available", "--timeout=120s")
	return s
}

// startController starts a controller at the address of the former one.
func (s *deployedLab) startController() {
	s.t.Helper()
	s.serial++
	s.control = s.e.run(fmt.Sprintf("controller-%d", s.serial), 4, []string{s.objects + ":/api:ro", s.state + ":/rack:ro"},
		"lab-controller", "--kubeconfig", "/api"+kubeconfig, "--ca", "/rack/ca.crt",
		"--provisioning-address", s.e.subnet+"4", "--lease-duration", "3s")
}

func (s *deployedLab) kubectl(args ...string) (string, error) {
	return s.api.exec(append([]string{"labctl", "kubectl", "--kubeconfig", "/var/lib/metalab" + kubeconfig}, args...)...)
}

func (s *deployedLab) mustKubectl(args ...string) string {
	s.t.Helper()
	out, err := s.kubectl(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *deployedLab) decode(text string, into any) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
}

// eventually repeats try until it succeeds.
func (s *deployedLab) eventually(what string, try func() error) {
	s.t.Helper()
	var err error
	for end := time.Now().Add(patience.Limit()); time.Now().Before(end); {
		if err = try(); err == nil {
			return
		}
		s.sleep(200 * time.Millisecond)
	}
	s.t.Fatalf("%s: not in %s: %v", what, patience.Limit(), err)
}

// sleep waits in real time: containers have no other clock.
func (s *deployedLab) sleep(d time.Duration) {
	s.t.Helper()
	select {
	case <-time.After(d):
	case <-s.t.Context().Done():
		s.t.Fatal(s.t.Context().Err())
	}
}

// server is a host as labctl host show describes it.
type server struct {
	Boots   int    `json:"boots"`
	Running string `json:"running"`
	Power   string `json:"power"`
}

func (s *deployedLab) server(name string) server {
	s.t.Helper()
	var out server
	s.decode(s.rack.must("labctl", "host", "show", name, "-o", "json"), &out)
	return out
}

func (s *deployedLab) host(name string) string {
	s.t.Helper()
	return s.mustKubectl("get", "bmh", name, "-o", "jsonpath={.status.provisioning.state}")
}

// deployment is the deployment of one host.
type deployment struct {
	s      *deployedLab
	host   string
	before server
}

// begin sets the image and returns when the server boots its agent. A part that is
// disrupted from then on must come back to the same agent.
func (s *deployedLab) begin(host string) deployment {
	s.t.Helper()
	d := deployment{s, host, s.server(host)}
	s.mustKubectl("patch", "bmh", host, "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"image":{"url":%q,"checksum":%q,"checksumType":"sha256","format":"raw"}}}`, s.image, s.image+".sha256"))
	s.mustKubectl("wait", "bmh", host, "--for=jsonpath={.status.provisioning.state}=provisioning", "--timeout=60s")
	s.eventually(host+" boots its agent", func() error {
		if now := s.server(host); now.Boots != d.before.Boots+1 {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
	return d
}

// hold lets a deployment that has not begun come no further than the end of its agent: the
// BMC refuses to eject the agent's medium, which is the first medium of the deployment.
func (s *deployedLab) hold(host string) {
	s.t.Helper()
	s.rack.must("labctl", "fault", "add", "--id", holdID, "--bmc", host, "--method", "POST", "--path", "/redfish/v1/**/VirtualMedia.EjectMedia", "--status", "503")
}

// release lets the deployment go on. It fails when the deployment was not held until now.
func (d deployment) release(what string) {
	d.s.t.Helper()
	if now := d.s.server(d.host); now.Boots != d.before.Boots+1 {
		d.s.t.Fatalf("%s: %s was %+v and is %+v meanwhile: it was not disrupted", what, d.host, d.before, now)
	}
	d.s.rack.must("labctl", "fault", "rm", holdID)
}

// mustComplete waits until the host is provisioned, and checks that nothing was done
// twice: the server has booted the agent and the image, and there is one event each.
func (d deployment) mustComplete(what string) {
	d.s.t.Helper()
	d.s.eventually(what+": "+d.host+" runs its image", func() error {
		if state := d.s.host(d.host); state != "provisioned" {
			return fmt.Errorf("it is %s: %s", state, d.s.mustKubectl("get", "bmh", d.host, "-o", "jsonpath={.status.errorMessage}"))
		}
		if now := d.s.server(d.host); now.Running != "disk" {
			return fmt.Errorf("the server is %+v", now)
		}
		return nil
	})
	if now := d.s.server(d.host); now.Boots != d.before.Boots+2 || now.Power != "On" {
		d.s.t.Errorf("%s: the server was %+v and is %+v, want it to have come up twice", what, d.before, now)
	}
	reasons := strings.Fields(d.s.mustKubectl("get", "events", "--field-selector", "involvedObject.name="+d.host, "-o", "jsonpath={.items[*].reason}"))
	got := map[string]int{}
	for _, r := range reasons {
		if strings.HasPrefix(r, "Provisioning") || strings.HasPrefix(r, "Deprovisioning") {
			got[r]++
		}
	}
	if diff := cmp.Diff(map[string]int{"ProvisioningStarted": 1, "ProvisioningComplete": 1}, got); diff != "" {
		d.s.t.Errorf("%s: events of %s (-want +got):\n%s", what, d.host, diff)
	}
}

// TestDisruptedDeploymentCompletesOnce disrupts a deployment in the middle, by one
// kind of failure after the other. A fault holds the deployment until the disruption is over:
// on a machine that is faster than the test it would be complete before.
func TestDisruptedDeploymentCompletesOnce(t *testing.T) {
	disruptions := []struct {
		name       string
		begin, end func(*deployedLab)
		blind      bool // the host cannot be read meanwhile
	}{
		{name: "rack cut off", begin: func(s *deployedLab) { s.rack.disconnect() }, end: func(s *deployedLab) { s.rack.reconnect() }},
		{name: "rack paused", begin: func(s *deployedLab) { s.rack.pause() }, end: func(s *deployedLab) { s.rack.unpause() }},
		{name: "controller replaced", begin: func(s *deployedLab) { s.control.kill() }, end: (*deployedLab).startController},
		// It loses its lease, ends, and is started again by the engine.
		{name: "controller paused", begin: func(s *deployedLab) { s.control.pause() }, end: func(s *deployedLab) { s.control.unpause() }},
		{name: "API killed", begin: func(s *deployedLab) { s.api.kill() }, end: func(s *deployedLab) { s.api.start() }, blind: true},
	}
	s := startLab(t, len(disruptions)+1)
	quiet := time.Now()
	s.begin("node-0").mustComplete("nothing")
	t.Logf("undisturbed: %s", time.Since(quiet).Round(time.Second))
	for i, tt := range disruptions {
		host := fmt.Sprintf("node-%d", i+1)
		s.hold(host)
		d := s.begin(host)
		tt.begin(s)
		s.sleep(disruption)
		if !tt.blind {
			if state := s.host(d.host); state != "provisioning" {
				t.Fatalf("%s: %s is %s meanwhile: it was not disrupted", tt.name, d.host, state)
			}
		}
		tt.end(s)
		s.eventually("the API answers", func() error {
			_, err := s.kubectl("get", "bmh")
			return err
		})
		d.release(tt.name)
		healed := time.Now()
		d.mustComplete(tt.name)
		t.Logf("%s: deployed %s after it", tt.name, time.Since(healed).Round(time.Second))
	}
}
