package lab

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/agent/unit"
	"github.com/metalab-dev/metalab/controller/mosk/provider/userdata"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/guest/sandbox"
	"github.com/metalab-dev/metalab/scenarios/images"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// Each version of the lab's own agent has a digest, and a file of any other content is not the lab's.
func TestVersionsOfTheLabsAgent(t *testing.T) {
	for _, version := range []string{"devel", "v1.2.0", "0.3.0-300", "v0.0.0-2026+dirty"} {
		if got, ok := versionOf(ownAgent(version)); got != version || !ok {
			t.Errorf("versionOf(ownAgent(%q)) = %q, %t", version, got, ok)
		}
	}
	if got, want := lcm.Sum(ownAgent("v1")), "df44b80aff574984e64a2587f7ea772440ae30e478709842dd683da61a3ed343"; got != want {
		t.Errorf("the digest of version v1 is %s, want %s: releases of earlier labs name it", got, want)
	}
	own := string(ownAgent("v1"))
	for name, text := range map[string]string{
		"more": own + "reboot\n", "less": own[:len(own)-1], "another version inside": strings.Replace(own, "lab-agent v1,", "lab-agent v2,", 1),
		"a version with quotes": string(ownAgent(`v1"; reboot "`)), "nothing": "", "a mark alone": "\n" + agentMark + "v1",
	} {
		if version, ok := versionOf([]byte(text)); ok {
			t.Errorf("%s: versionOf = %q, true", name, version)
		}
	}
}

func TestServerOfTheLabsAgent(t *testing.T) {
	own := string(ownAgent("v1.0+x"))
	for _, tt := range []struct {
		method, path string
		code         int
		want         string
	}{
		{"GET", "/agents/v1.0+x/lab-agent", 200, own},
		{"GET", "/agents/v1.0+x/lab-agent.sha256", 200, lcm.Sum([]byte(own)) + "  lab-agent\n"},
		{"HEAD", "/agents/v1.0+x/lab-agent", 200, ""},
		{"POST", "/agents/v1.0+x/lab-agent", 405, "method not allowed"},
		{"GET", "/agents/", 404, "/agents/VERSION/lab-agent"},
		{"GET", "/agents/v1/other", 404, "/agents/VERSION/lab-agent"},
		{"GET", "/agents/v1/x/lab-agent", 404, "/agents/VERSION/lab-agent"},
		{"GET", "/agents/" + strings.Repeat("v", 200) + "/lab-agent", 404, "/agents/VERSION/lab-agent"},
		{"GET", "/agents/%0Areboot/lab-agent", 404, "/agents/VERSION/lab-agent"},
	} {
		rec := httptest.NewRecorder()
		serveAgent(rec, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil))
		if rec.Code != tt.code || !strings.Contains(rec.Body.String(), tt.want) {
			t.Errorf("%s %s = %d, %q", tt.method, tt.path, rec.Code, rec.Body)
		}
	}
}

// A download is bounded, and goes through the proxy of the unit's environment.
func TestFetchProgram(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Host == "files.invalid" && r.Header.Get("Proxy-Authorization") != "": // as a proxy
			_, _ = w.Write([]byte("behind"))
		case r.URL.Path == "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	host := strings.TrimPrefix(web.URL, "http://")
	behind := lcm.Sum([]byte("behind"))
	for _, tt := range []struct{ name, url, sum, env, want string }{
		{"proxy", "http://files.invalid/agent", behind, "http_proxy=http://u:secretword@" + host, ""},
		{"no proxy", "http://files.invalid/agent", behind, "X=y", "no such host"},
		{"a proxy that is no URL", "http://files.invalid/agent", behind, "http_proxy=secretword", "http_proxy of the unit's environment: give a URL"},
		{"endless", web.URL + "/endless", behind, "", "the file has more than 64 MiB"},
		{"missing", "http://u:secretword@" + host + "/none", behind, "", "http://u:xxxxx@" + host + "/none: 404 Not Found"},
		{"no URL", "lab-agent", behind, "", "give a URL of HTTP or HTTPS"},
		{"a file", "file:///etc/passwd", behind, "", "give a URL of HTTP or HTTPS"},
		{"digest", "http://files.invalid/agent", strings.Repeat("5a", 32), "http_proxy=http://u:p@" + host, "http://files.invalid/agent has the SHA-256 " + behind + ", and the release names " + strings.Repeat("5a", 32)},
	} {
		_, data, err := fetchProgram(t.Context(), tt.url, tt.sum, []string{tt.env})
		if tt.want == "" && (err != nil || string(data) != "behind") || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || data != nil) {
			t.Errorf("%s: fetchProgram = %q, %v, want %s", tt.name, data, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secretword") {
			t.Errorf("%s: the message has a password: %v", tt.name, err)
		}
	}
}

// agentLab is a server that has booted, and a service with an agent to be fetched.
type agentLab struct {
	*Lab
	t    *testing.T
	host string
	x    *system
}

func startAgentLab(t *testing.T) agentLab {
	t.Helper()
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: "max"}, Listen: AnyPort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	})
	image, err := images.Build()
	if err != nil {
		t.Fatal(err)
	}
	h := w.rack.Hosts()[0]
	writeImage(t, h, image)
	if _, err := w.Control().Power(t.Context(), h.Name(), "On"); err != nil {
		t.Fatal(err)
	}
	a := agentLab{Lab: w, t: t, host: h.Name()}
	patience.Await(t, "the server boots", func() bool { a.x, err = w.agents.systems.of(t.Context(), h); return err == nil })
	return a
}

// service starts a unit that fetches an agent as user data ask for it, and runs args of it.
func (a agentLab) service(url, sum, args string) {
	a.t.Helper()
	err := a.x.Put(sandbox.Tree{
		userdata.FetchProgram[1:]:          sandbox.File(0o755, userdata.FetchScript),
		"etc/systemd/system/agent.service": sandbox.File(0o644, unit.Service("Agent", args, fmt.Sprintf("ExecStartPre=%s %s %s\n", userdata.FetchProgram, url, sum))),
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.ctl("daemon-reload")
	a.ctl("restart", "--no-block", "agent")
}

func (a agentLab) ctl(args ...string) string {
	a.t.Helper()
	var out strings.Builder
	if _, err := a.x.Exec(a.t.Context(), sandbox.Command{Args: append([]string{"systemctl"}, args...), Stdout: &out, Stderr: &out}); err != nil {
		a.t.Fatal(err)
	}
	return out.String()
}

// awaitLine waits until the journal has a line about the service.
func (a agentLab) awaitLine(text string) {
	a.t.Helper()
	var lines []string
	patience.Await(a.t, "the journal has "+text, func() bool {
		entries, _, err := a.rack.Journal().Select(journal.Query{What: "os.service"})
		if err != nil {
			a.t.Fatal(err)
		}
		lines = nil
		for _, e := range entries {
			lines = append(lines, e.Text)
		}
		return strings.Contains(strings.Join(lines, "\n"), text)
	}, &lines)
}

// A wrong digest installs nothing, and names URL and both digests; the unit goes on when the file is
// right. The lab's own agent then runs in the lab's process, and another one at real time alone.
func TestServersInstallTheAgentOfARelease(t *testing.T) {
	a := startAgentLab(t)
	var right bool
	own, wrong := ownAgent("v7"), "a file of somebody"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := wrong
		if right || r.URL.Path == "/foreign" {
			text = string(own)
		}
		if r.URL.Path == "/foreign" {
			text = wrong
		}
		_, _ = io.WriteString(w, text)
	}))
	defer web.Close()
	a.service(web.URL+"/agent", lcm.Sum(own), "lcm")
	a.awaitLine("agent.service: /usr/local/bin/lab-agent is not installed: " + web.URL + "/agent has the SHA-256 " + lcm.Sum([]byte(wrong)) + ", and the release names " + lcm.Sum(own))
	if _, err := a.x.ReadFile(AgentFile); err == nil {
		t.Error("a file with a wrong digest is installed")
	}
	a.ctl("stop", "agent")
	right = true
	a.ctl("start", "--no-block", "agent")
	a.awaitLine("agent.service: /usr/local/bin/lab-agent was installed from " + web.URL + "/agent")
	a.awaitLine("agent.service: /usr/local/bin/lab-agent is the lab's own agent, version v7: the lab's process runs it")
	if b, err := a.x.ReadFile(AgentFile); err != nil || string(b) != string(own) {
		t.Errorf("the program is %q, %v", b, err)
	}
	a.ctl("stop", "agent")
	if err := a.x.Remove(AgentFile[1:]); err != nil {
		t.Fatal(err)
	}
	a.service(web.URL+"/foreign", lcm.Sum([]byte(wrong)), "lcm")
	a.awaitLine("agent.service: /usr/local/bin/lab-agent (SHA-256 " + lcm.Sum([]byte(wrong)) + ") is not the lab's own agent, and a process runs in real time: start the lab with --speed 1x")
	if err := a.agents.systems.acceptAgent([]byte(wrong)); err == nil {
		t.Error("an upgrade to a program that cannot run is accepted")
	}
	if err := a.agents.systems.acceptAgent(own); err != nil {
		t.Error(err)
	}
}

// At the speed 1x alone an agent may be a process.
func TestRealTime(t *testing.T) {
	for speed, want := range map[string]bool{"1x": true, "2x": false, "max": false} {
		w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: Settings{Hosts: 1, Speed: speed}, Listen: AnyPort})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.agents.systems.realTime; got != want {
			t.Errorf("at the speed %s realTime is %t", speed, got)
		}
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// In real time another agent is a process of the server.
func TestAnotherAgentIsAProcess(t *testing.T) {
	prerequisites.Need(t, "user namespaces")
	a := startAgentLab(t)
	a.agents.systems.realTime = true // a server of a lab at 1x takes two minutes to boot
	other := "#!/bin/sh\necho \"$@\" > /var/lib/ran\nexec sleep 1000\n"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, other) }))
	defer web.Close()
	a.service(web.URL+"/other", lcm.Sum([]byte(other)), "lcm --config x")
	a.awaitLine("agent.service: /usr/local/bin/lab-agent (SHA-256 " + lcm.Sum([]byte(other)) + ") is not the lab's own agent: it runs as a process of the server")
	patience.Await(t, "the process runs", func() bool {
		b, err := a.x.ReadFile("var/lib/ran")
		return err == nil && string(b) == "lcm --config x\n"
	})
	if err := a.agents.systems.acceptAgent([]byte(other)); err != nil {
		t.Error(err)
	}
}
