package containers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// engine is a container engine with the containers of one test.
type engine struct {
	t      *testing.T
	client *docker.Client
	image  string
	prefix string // prefix of all names
	net    *docker.Network
	subnet string // its first three bytes
}

// newEngine connects to the engine that the environment names, as docker does, and
// creates a private network. It skips the test, or fails it, when the engine or the
// image is missing.
func newEngine(t *testing.T) *engine {
	t.Helper()
	prerequisites.Need(t, "container engine")
	image := prerequisites.Need(t, "container image")
	pool, err := dockertest.NewPool("")
	if err == nil {
		err = pool.Client.Ping()
	}
	if err != nil {
		t.Fatal(err)
	}
	id := make([]byte, 4)
	rand.Read(id) // it does not fail
	e := &engine{t: t, client: pool.Client, image: image, prefix: "metalab-test-" + hex.EncodeToString(id) + "-"}
	// go test caches a result until a file changes that the test has opened or
	// checked: the image is made of these.
	for _, name := range []string{"labctl", "lab-controller", "lab-agent"} {
		if _, err := os.Stat("../../bin/" + name); err != nil {
			t.Log(err)
		}
	}
	e.network()
	return e
}

// network creates an isolated network. Addresses in it are fixed: a container that
// is started again has the same one.
func (e *engine) network() {
	e.t.Helper()
	var err error
	for range 20 { // a subnet may be in use
		e.subnet = fmt.Sprintf("172.29.%d.", mathrand.IntN(256))
		e.net, err = e.client.CreateNetwork(docker.CreateNetworkOptions{
			Name: e.prefix + "net", Driver: "bridge", Internal: true, CheckDuplicate: true,
			IPAM: &docker.IPAMOptions{Config: []docker.IPAMConfig{{Subnet: e.subnet + "0/24"}}},
		})
		if err == nil {
			e.t.Cleanup(func() { e.check("remove the network", e.client.RemoveNetwork(e.net.ID)) })
			return
		}
	}
	e.t.Fatalf("make a network: %v", err)
}

func (e *engine) check(what string, err error) {
	e.t.Helper()
	if err != nil {
		e.t.Errorf("%s: %v", what, err)
	}
}

// volume creates a volume and returns its name.
func (e *engine) volume(name string) string {
	e.t.Helper()
	v, err := e.client.CreateVolume(docker.CreateVolumeOptions{Name: e.prefix + name})
	if err != nil {
		e.t.Fatalf("make volume %s: %v", name, err)
	}
	e.t.Cleanup(func() {
		e.check("remove volume "+name, e.client.RemoveVolumeWithOptions(docker.RemoveVolumeOptions{Name: v.Name}))
	})
	return v.Name
}

// container is a container that runs or has run.
type container struct {
	e    *engine
	id   string
	name string
	ip   string
}

// run starts a command of the image in a container. host is the last byte of its
// address; binds are volume:path.
func (e *engine) run(name string, host int, binds []string, command ...string) *container {
	e.t.Helper()
	c := &container{e: e, name: name, ip: fmt.Sprintf("%s%d", e.subnet, host)}
	made, err := e.client.CreateContainer(docker.CreateContainerOptions{
		Name:   e.prefix + name,
		Config: &docker.Config{Image: e.image, Cmd: command},
		HostConfig: &docker.HostConfig{
			Binds: binds, RestartPolicy: docker.RestartOnFailure(10),
			ReadonlyRootfs: true, Tmpfs: map[string]string{"/tmp": ""},
		},
		NetworkingConfig: &docker.NetworkingConfig{EndpointsConfig: map[string]*docker.EndpointConfig{
			e.net.ID: {IPAMConfig: &docker.EndpointIPAMConfig{IPv4Address: c.ip}},
		}},
	})
	if err != nil {
		e.t.Fatalf("make container %s: %v", name, err)
	}
	c.id = made.ID
	e.t.Cleanup(func() {
		if e.t.Failed() {
			e.t.Logf("%s said:\n%s", name, c.logs())
		}
		e.check("remove container "+name, e.client.RemoveContainer(docker.RemoveContainerOptions{ID: c.id, Force: true, RemoveVolumes: true}))
	})
	if err := e.client.StartContainer(c.id, nil); err != nil {
		e.t.Fatalf("start container %s: %v", name, err)
	}
	return c
}

// logs returns the last lines that a container has printed.
func (c *container) logs() string {
	var b bytes.Buffer
	err := c.e.client.Logs(docker.LogsOptions{
		Container: c.id, OutputStream: &b, ErrorStream: &b, Stdout: true, Stderr: true, Tail: "60",
	})
	if err != nil {
		return err.Error()
	}
	return b.String()
}

// exec runs a command in a container and returns what it prints.
func (c *container) exec(command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.e.t.Context(), patience.Of(2*time.Minute))
	defer cancel()
	var out, errs bytes.Buffer
	x, err := c.e.client.CreateExec(docker.CreateExecOptions{
		Container: c.id, Cmd: command, AttachStdout: true, AttachStderr: true, Context: ctx,
	})
	if err == nil {
		err = c.e.client.StartExec(x.ID, docker.StartExecOptions{OutputStream: &out, ErrorStream: &errs, Context: ctx})
	}
	if err != nil {
		return "", fmt.Errorf("%s in %s: %w", strings.Join(command, " "), c.name, err)
	}
	ended, err := c.e.client.InspectExec(x.ID)
	if err == nil && ended.ExitCode != 0 {
		err = fmt.Errorf("exit code %d: %s%s", ended.ExitCode, out.String(), errs.String())
	}
	if err != nil {
		return "", fmt.Errorf("%s in %s: %w", strings.Join(command, " "), c.name, err)
	}
	return out.String(), nil
}

// must runs a command that must succeed.
func (c *container) must(command ...string) string {
	c.e.t.Helper()
	out, err := c.exec(command...)
	if err != nil {
		c.e.t.Fatal(err)
	}
	return out
}

// kill sends SIGKILL. The engine does not restart the container.
func (c *container) kill() {
	c.e.t.Helper()
	if err := c.e.client.KillContainer(docker.KillContainerOptions{ID: c.id, Signal: docker.SIGKILL}); err != nil {
		c.e.t.Fatalf("kill %s: %v", c.name, err)
	}
}

func (c *container) start() {
	c.e.t.Helper()
	if err := c.e.client.StartContainer(c.id, nil); err != nil {
		c.e.t.Fatalf("start %s: %v", c.name, err)
	}
}

func (c *container) pause() {
	c.e.t.Helper()
	if err := c.e.client.PauseContainer(c.id); err != nil {
		c.e.t.Fatalf("pause %s: %v", c.name, err)
	}
}

func (c *container) unpause() {
	c.e.t.Helper()
	if err := c.e.client.UnpauseContainer(c.id); err != nil {
		c.e.t.Fatalf("unpause %s: %v", c.name, err)
	}
}

// disconnect removes a container from the network.
func (c *container) disconnect() {
	c.e.t.Helper()
	if err := c.e.client.DisconnectNetwork(c.e.net.ID, docker.NetworkConnectionOptions{Container: c.id, Force: true}); err != nil {
		c.e.t.Fatalf("cut %s off: %v", c.name, err)
	}
}

// reconnect connects it again, at the same address.
func (c *container) reconnect() {
	c.e.t.Helper()
	err := c.e.client.ConnectNetwork(c.e.net.ID, docker.NetworkConnectionOptions{
		Container: c.id, EndpointConfig: &docker.EndpointConfig{IPAMConfig: &docker.EndpointIPAMConfig{IPv4Address: c.ip}},
	})
	if err != nil {
		c.e.t.Fatalf("connect %s: %v", c.name, err)
	}
}
