// Package version tells which build of Metalab a program is. It reads what the Go
// toolchain writes into programs, and knows no program.
package version

import (
	"runtime/debug"
	"strings"
)

// release is the version that make release gives: "v1.2.0", or what git describe
// says between releases. Without it the version is the toolchain's.
var release string

// commit is the commit that make build gives: the toolchain writes none with
// -buildvcs=false, nor in some checkouts.
var commit string

// Info is a build.
type Info struct {
	Version    string `json:"version"`              // of the release, or "devel"
	Commit     string `json:"commit,omitempty"`     // 12 digits of the hash, with "+changes" when files differed from it
	Kubernetes string `json:"kubernetes,omitempty"` // version of the Kubernetes API or of its client; "" when the program has neither
	Go         string `json:"go"`
}

// Read returns the build of this program.
func Read() Info {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{Version: "unknown"}
	}
	return of(b, release)
}

func of(b *debug.BuildInfo, release string) Info {
	i := Info{Version: release, Go: b.GoVersion}
	if i.Version == "" {
		if i.Version = b.Main.Version; i.Version == "" || i.Version == "(devel)" {
			i.Version = "devel"
		}
	}
	dirty := ""
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			i.Commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if i.Commit != "" {
		i.Commit += dirty
	} else {
		i.Commit = commit
	}
	for _, m := range b.Deps {
		switch m.Path {
		case "k8s.io/kubernetes":
			i.Kubernetes = m.Version
		case "k8s.io/client-go": // v0.37.1 is the client of Kubernetes v1.37.1
			if i.Kubernetes == "" {
				i.Kubernetes = strings.Replace(m.Version, "v0.", "v1.", 1)
			}
		}
	}
	return i
}

// String returns the build in a line: "v1.2.0 (commit 0123456789ab, Kubernetes
// v1.37.1, go1.26.8)".
func (i Info) String() string {
	var parts []string
	if i.Commit != "" {
		parts = append(parts, "commit "+i.Commit)
	}
	if i.Kubernetes != "" {
		parts = append(parts, "Kubernetes "+i.Kubernetes)
	}
	if i.Go != "" {
		parts = append(parts, i.Go)
	}
	if len(parts) == 0 {
		return i.Version
	}
	return i.Version + " (" + strings.Join(parts, ", ") + ")"
}
