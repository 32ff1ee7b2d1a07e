package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/net/http/httpproxy"

	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/controller/mosk/provider/userdata"
	"github.com/metalab-dev/metalab/guest/sandbox"
	build "github.com/metalab-dev/metalab/version"
)

// This file installs the agent that a release names on a server, and says which programs of a server
// this process runs.

// maxAgent is how many bytes a server downloads: as many as a system reads of a file at once.
const maxAgent = 64 << 20

// installed is the agent's program on a server.
type installed struct {
	version, sum string // sum is "" without a file
	// own means that the file is the lab's own agent, foreign that the server has installed another
	// one. Without a file, or with that of an image, the lab's agent stands for it.
	own, foreign bool
}

// program describes the file at the path of an agent's program.
func (x *system) program(name string) (installed, error) {
	b, err := x.ReadFile(name)
	in := installed{version: build.Read().Version}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return in, nil
	case errors.Is(err, syscall.EFBIG):
	case err != nil:
		return in, err
	default:
		in.sum = lcm.Sum(b)
		if v, ok := versionOf(b); ok {
			in.version, in.own = v, true
			return in, nil
		}
	}
	layer, err := x.Layer()
	_, in.foreign = layer[sandbox.Clean(name)]
	return in, err
}

// standsFor reports whether this process runs a program that a unit starts.
func (y *systems) standsFor(x *system, unit, program string) (bool, error) {
	switch {
	case program == userdata.FetchProgram:
		b, err := x.ReadFile(program)
		return err == nil && string(b) == userdata.FetchScript, nil // else the file, or its absence, is the user's
	case path.Base(program) != labAgent:
		return false, nil
	}
	in, err := x.program(program)
	switch {
	case err != nil:
		return false, err
	case in.own:
		x.tell(unit, fmt.Sprintf("%s is the lab's own agent, version %s: the lab's process runs it", program, in.version))
		return true, nil
	case !in.foreign:
		return true, nil
	}
	if err := y.accept(program, in.sum, in.foreign); err != nil {
		x.tell(unit, err.Error())
		return false, err
	}
	x.tell(unit, fmt.Sprintf("%s%s is not the lab's own agent: it runs as a process of the server, whose network has no address but the server's own", program, sumText(in.sum)))
	return false, nil
}

// acceptAgent returns why a server cannot run a program in the place of its agent.
func (y *systems) acceptAgent(program []byte) error {
	_, own := versionOf(program)
	return y.accept("the program", lcm.Sum(program), !own)
}

func (y *systems) accept(program, sum string, foreign bool) error {
	if !foreign || y.realTime {
		return nil
	}
	return fmt.Errorf("%s%s is not the lab's own agent, and a process runs in real time: start the lab with --speed 1x, or name the agent of labctl status", program, sumText(sum))
}

// sumText is the part of a message that has the digest of a file; "" is that of a file too large to
// be read.
func sumText(sum string) string {
	if sum == "" {
		return fmt.Sprintf(" (more than %d MiB)", maxAgent>>20)
	}
	return " (SHA-256 " + sum + ")"
}

// told are the last lines about units.
type told struct {
	mu sync.Mutex
	by map[string]string
}

// tell shows a line about a unit on the server's console and in the journal, unless it was the last
// one: a unit that fails starts again every few seconds.
func (x *system) tell(unit, text string) {
	x.told.mu.Lock()
	was := x.told.by[unit]
	if x.told.by == nil {
		x.told.by = map[string]string{}
	}
	x.told.by[unit] = text
	x.told.mu.Unlock()
	if was == text {
		return
	}
	_, _ = fmt.Fprintf(consoleWriter{x.host, x.os.Boot}, "%s: %s\n", unit, text) // the console drops what comes late
	x.host.RecordService(unit + ": " + text)
}

// fetchAgent is userdata.FetchScript: it installs the agent of a URL and SHA-256, through the proxies
// of the unit's environment. The network of a server's processes does not reach the URL.
func (y *systems) fetchAgent(ctx context.Context, x *system, unit string, args, env []string) error {
	defer y.clock.Enter()()
	if len(args) != 2 {
		return fmt.Errorf("give %s a URL and a SHA-256", userdata.FetchProgram)
	}
	there, err := x.hasAgent()
	if there || err != nil {
		return err
	}
	shown, data, err := fetchProgram(ctx, args[0], args[1], env)
	if err == nil {
		err = x.Put(sandbox.Tree{sandbox.Clean(AgentFile): {Mode: 0o755, Content: data}})
	}
	switch {
	case err == nil:
		x.tell(unit, fmt.Sprintf("%s was installed from %s", AgentFile, shown))
	case ctx.Err() == nil:
		x.tell(unit, fmt.Sprintf("%s is not installed: %v", AgentFile, err))
	}
	return err
}

// hasAgent reports whether a server or its image has an agent. This machine's is neither.
func (x *system) hasAgent() (bool, error) {
	n, err := x.Stat(AgentFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !n.Mode.IsRegular() || n.Mode.Perm()&0o111 == 0:
		return false, nil
	case x.files.find != nil && x.files.find() != nil:
		return true, nil
	}
	layer, err := x.Layer()
	_, there := layer[sandbox.Clean(AgentFile)]
	return there, err
}

// fetchProgram downloads a file and checks its SHA-256. shown is the URL without a password.
func fetchProgram(ctx context.Context, address, sum string, env []string) (shown string, data []byte, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", nil, errors.New("downloadURL of the release's agent: give a URL of HTTP or HTTPS")
	}
	shown = u.Redacted()
	proxy, err := proxyOf(env)
	if err != nil {
		return shown, nil, fmt.Errorf("%s: %w", shown, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	transport.Proxy = func(r *http.Request) (*url.URL, error) { return proxy(r.URL) }
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return shown, nil, fmt.Errorf("%s: %w", shown, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return shown, nil, err // it names the URL, and no password
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return shown, nil, fmt.Errorf("%s: %s", shown, resp.Status)
	}
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxAgent+1))
	switch got := lcm.Sum(data); {
	case err != nil:
		return shown, nil, fmt.Errorf("%s: %w", shown, err)
	case len(data) > maxAgent:
		return shown, nil, fmt.Errorf("%s: the file has more than %d MiB", shown, maxAgent>>20)
	case got != sum:
		return shown, nil, fmt.Errorf("%s has the SHA-256 %s, and the release names %s: correct the release or the file", shown, got, sum)
	}
	return shown, data, nil
}

// proxyOf returns which proxy a URL is downloaded through, by the variables that curl(1) reads. A value that
// is no URL is an error, which does not show it: httpproxy would download past the proxy.
func proxyOf(env []string) (func(*url.URL) (*url.URL, error), error) {
	values := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	c := httpproxy.Config{HTTPProxy: values["http_proxy"], HTTPSProxy: values["https_proxy"], NoProxy: values["no_proxy"]}
	for _, name := range []string{"http_proxy", "https_proxy"} {
		value := values[name]
		u, err := url.Parse(value)
		if value != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return nil, fmt.Errorf("%s of the unit's environment: give a URL of http or https", name)
		}
	}
	return c.ProxyFunc(), nil
}
