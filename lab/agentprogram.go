package lab

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/agent/lcm"
	"github.com/metalab-dev/metalab/emulator/rack/control"
	build "github.com/metalab-dev/metalab/version"
)

// The lab's own agent is code of this process. What stands for it on a server, where a release names
// a file and its SHA-256, is a script of a few lines: its content is that of its version, so that
// each version has a digest of its own and an upgrade can be rehearsed.

// agentsPath is the URL path of the lab's own agent: agentsPath + VERSION + "/lab-agent".
const agentsPath = "/agents/"

// sumSuffix is that of the URL of a file's checksum.
const sumSuffix = ".sha256"

// agentVersion matches the versions in which the lab has its own agent.
var agentVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,127}$`)

// agentMark begins the line of the script that has its version.
const agentMark = "# lab-agent, version "

// ownAgent returns the file of the lab's own agent in a version. Its text does not change any more:
// servers have it, and releases its digest.
func ownAgent(version string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
%s%s
# The agent is code of the lab's process, which runs it for the units that start this file.
case "${1-}" in
version | --version) echo "lab-agent %[2]s, of the lab" ;;
*)
	echo "lab-agent: the lab runs it for the units of this server that start it: use systemctl" >&2
	exit 126
	;;
esac
`, agentMark, version)
}

// versionOf returns the version of a file that is the lab's own agent; ok is false for any other.
func versionOf(file []byte) (version string, ok bool) {
	_, rest, found := bytes.Cut(file, []byte("\n"+agentMark))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	version = string(line)
	return version, found && agentVersion.MatchString(version) && bytes.Equal(file, ownAgent(version))
}

// AgentProgram returns the lab's own agent in a version, as spec.agent of a ClusterRelease names it.
// "" is the version of this program.
func (l *Lab) AgentProgram(version string) control.Program {
	if version == "" {
		version = build.Read().Version
	}
	return control.Program{Version: version, URL: "http://" + l.ports.Images + agentsPath + version + "/" + labAgent, SHA256: lcm.Sum(ownAgent(version))}
}

// agentProgram returns the lab's own agent; nil in a lab without releases.
func (l *Lab) agentProgram() *control.Program {
	if !l.servesCharts() {
		return nil
	}
	p := l.AgentProgram("")
	return &p
}

// withAgents returns a handler of the lab's own agent, and of others for all other paths.
func (l *Lab) withAgents(others http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, agentsPath) {
			others.ServeHTTP(rw, r)
			return
		}
		defer l.clock.Enter()()
		serveAgent(rw, r)
	})
}

// serveAgent serves the lab's own agent in each version, and its checksum as sha256sum(1) prints it.
func serveAgent(rw http.ResponseWriter, r *http.Request) {
	version, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, agentsPath), "/")
	file, isSum := strings.CutSuffix(name, sumSuffix)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		rw.Header().Set("Allow", "GET, HEAD")
		http.Error(rw, "method not allowed", http.StatusMethodNotAllowed)
		return
	case file != labAgent || !agentVersion.MatchString(version):
		http.Error(rw, "the lab's agent is "+agentsPath+"VERSION/"+labAgent+", its checksum the same with "+sumSuffix, http.StatusNotFound)
		return
	}
	content := ownAgent(version)
	rw.Header().Set("Content-Type", "application/octet-stream")
	if isSum {
		content = fmt.Appendf(nil, "%s  %s\n", lcm.Sum(content), labAgent)
		rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	http.ServeContent(rw, r, "", time.Time{}, bytes.NewReader(content))
}
