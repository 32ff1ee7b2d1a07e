// Peers runs the read-only checks of a BMC (scenarios/conformance) against emulators
// that nobody here wrote, in containers, and always against this project's image:
// `make interop`. An image that cannot be pulled is text and skipped. The exit code is
// not 0 when this project's image cannot run, or when a check of it ends in an error.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// peer is an emulator in an image.
type peer struct {
	name, repository, tag string
	command               []string
	port                  string // port of the service in the container
	scheme                string
	user, password        string
	mounts                []string
	local                 bool // this project's image
}

// lab is the rack file of this project's image.
const lab = "kind: Lab\naccounts: [{name: admin, password: interop-admin}]\nhosts: [{count: 1}]\n"

// labFile writes the rack file, and returns its path.
func labFile() (string, error) {
	f, err := os.CreateTemp("", "rack-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(lab)
	return f.Name(), errors.Join(err, f.Chmod(0o644), f.Close())
}

func main() {
	image := flag.String("image", "metalab", "the image of this project, which make image builds")
	flag.Parse()
	if err := all(context.Background(), *image); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func all(ctx context.Context, image string) error {
	file, err := labFile()
	if err != nil {
		return err
	}
	defer os.Remove(file)
	return run(ctx, os.Stdout, []peer{
		{
			name: "metalab", repository: image, tag: "latest", port: "9000/tcp", scheme: "https", user: "admin", password: "interop-admin", local: true,
			command: []string{"labctl", "up", "--no-kube", "-f", "/rack.yaml", "--listen", "eth0:9000", "--speed", "1x"}, mounts: []string{file + ":/rack.yaml:ro"},
		},
		{name: "Redfish-Mockup-Server", repository: "dmtf/redfish-mockup-server", tag: "latest", port: "8000/tcp", scheme: "http", user: "admin", password: "password"},
		{
			name: "sushy-tools", repository: "quay.io/metal3-io/sushy-tools", tag: "latest", port: "8000/tcp", scheme: "http", user: "admin", password: "password",
			command: []string{"sushy-emulator", "--fake", "-i", "::", "-p", "8000"},
		},
	})
}

// run checks the peers one after another. Its error is about this project's image.
func run(ctx context.Context, out io.Writer, peers []peer) error {
	pool, err := dockertest.NewPool("")
	if err == nil {
		err = pool.Client.PingWithContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("no container engine: %w: install docker.io, or set DOCKER_HOST", err)
	}
	pool.MaxWait = 2 * time.Minute
	var failed error
	for _, p := range peers {
		line, err := check(ctx, pool, p)
		switch {
		case err == nil:
			_, _ = fmt.Fprintf(out, "%-22s %s\n", p.name, line)
		case p.local:
			failed = fmt.Errorf("%s: %w", p.name, err)
			_, _ = fmt.Fprintln(out, failed)
		default:
			_, _ = fmt.Fprintf(out, "%-22s skipped: %v\n", p.name, err)
		}
	}
	return failed
}

// check starts a peer and returns the verdicts of its checks by number, and which of them fail.
func check(ctx context.Context, pool *dockertest.Pool, p peer) (line string, err error) {
	container, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository: p.repository, Tag: p.tag, Cmd: p.command, ExposedPorts: []string{p.port}, Mounts: p.mounts,
	})
	if err != nil {
		return "", fmt.Errorf("%s:%s: %w", p.repository, p.tag, err)
	}
	defer func() {
		if gone := pool.Purge(container); gone != nil && err == nil {
			err = gone
		}
	}()
	conf := conformance.Config{
		URL: p.scheme + "://" + container.GetHostPort(p.port), Username: p.user, Password: p.password, Insecure: true,
	}
	if err := pool.Retry(func() error { return answers(ctx, conf) }); err != nil {
		var text bytes.Buffer
		_ = pool.Client.Logs(docker.LogsOptions{Context: ctx, Container: container.Container.ID, OutputStream: &text, ErrorStream: &text, Stdout: true, Stderr: true, Tail: "5"})
		return "", fmt.Errorf("it does not answer: %w: %s", err, strings.TrimSpace(text.String()))
	}
	bmc, err := conformance.Open(conf)
	if err != nil {
		return "", err
	}
	count := map[conformance.Verdict]int{}
	var failed []string
	for _, r := range bmc.Execute(ctx, conformance.Checks()) {
		count[r.Verdict]++
		switch r.Verdict {
		case conformance.Broken:
			err = fmt.Errorf("%s ends in an error: %s", r.ID, r.Reason)
		case conformance.Fail:
			failed = append(failed, r.ID)
		}
	}
	line = fmt.Sprintf("%d pass, %d warn, %d fail, %d skip, %d error", count[conformance.Pass], count[conformance.Warn],
		count[conformance.Fail], count[conformance.Skip], count[conformance.Broken])
	if len(failed) > 0 {
		line += "; fail: " + strings.Join(failed, " ")
	}
	return line, err
}

// answers asks for the service root with the first check.
func answers(ctx context.Context, conf conformance.Config) error {
	bmc, err := conformance.Open(conf)
	if err != nil {
		return err
	}
	first, err := conformance.Select([]string{"NET-001"})
	if err != nil {
		return err
	}
	for _, r := range bmc.Execute(ctx, first) {
		if r.Verdict == conformance.Broken || r.Verdict == conformance.Fail {
			return fmt.Errorf("%s: %s", http.StatusText(http.StatusServiceUnavailable), r.Reason)
		}
	}
	return nil
}
