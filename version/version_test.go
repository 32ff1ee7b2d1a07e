package version

import (
	"runtime/debug"
	"testing"
)

func TestVersionNamesCommitAndKubernetes(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}
	clean := append([]debug.BuildSetting{}, commit[0], debug.BuildSetting{Key: "vcs.modified", Value: "false"})
	server := &debug.Module{Path: "k8s.io/kubernetes", Version: "v1.37.1"}
	client := &debug.Module{Path: "k8s.io/client-go", Version: "v0.37.2"}
	for _, tt := range []struct {
		name    string
		info    debug.BuildInfo
		release string
		want    string
	}{
		{"release", debug.BuildInfo{GoVersion: "go1.26", Settings: clean, Deps: []*debug.Module{server, client}}, "v1.2.0", "v1.2.0 (commit 0123456789ab, Kubernetes v1.37.1, go1.26)"},
		{"client first", debug.BuildInfo{GoVersion: "go1.26", Settings: commit, Deps: []*debug.Module{client, server}}, "", "devel (commit 0123456789ab+changes, Kubernetes v1.37.1, go1.26)"},
		{"client", debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}, Deps: []*debug.Module{client}}, "", "devel (Kubernetes v1.37.2, go1.26)"},
		{"neither", debug.BuildInfo{Main: debug.Module{Version: "v0.9.0"}}, "", "v0.9.0"},
	} {
		if got := of(&tt.info, tt.release).String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := Read(); got.Version == "" || got.Go == "" {
		t.Errorf("Read() = %+v", got)
	}
}
