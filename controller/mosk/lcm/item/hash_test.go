package item

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// hostOS are the items that the specification's example has.
var hostOS = HostOS("test", "sample-module", "1.0.0", lcmv1.PhaseReconfigure)

func with(it lcmv1.LCMStateItem, params map[string]string) lcmv1.LCMStateItem {
	it.Params = params
	return it
}

// statements H12 and H13: the names, and the hashes that agents and controllers agree on.
func TestHashOfHostOSItems(t *testing.T) {
	want := []lcmv1.LCMStateItem{
		{Runner: "downloader", Name: "host-os-download-test-sample-module-1.0.0-reconfigure", Version: "v1", Phase: "reconfigure"},
		{Runner: "ansible", Name: "host-os-test-sample-module-1.0.0-reconfigure", Version: "v1", Phase: "reconfigure"},
	}
	if diff := cmp.Diff(want, hostOS); diff != "" {
		t.Errorf("HostOS (-want +got):\n%s", diff)
	}
	overwritten := with(hostOS[1], map[string]string{
		"ansible": "/usr/bin/ansible-playbook", "path": "/root/host-os-modules/sample-module-1.0.0", "playbook": "directory/playbook-name.yaml", "sha256": "abc",
	})
	for _, tt := range []struct {
		name string
		item lcmv1.LCMStateItem
		want string
	}{
		{"download", hostOS[0], "f5aa09b67bf043a68ad2c03a890b1aa23e80dd8faa94406d03a3942d47f0c5ce"},
		{"playbook", hostOS[1], "717d07f8b36ec9eb6ada908edfe38e7fc248be853186dfa6c4ee37ca0d56d4ac"},
		{"playbook with params", overwritten, "f876ac695c2d869d831300e9dc8962a16c4b940a78b01b9a6595f177be35c1e0"},
		{"no params is as empty params", with(hostOS[1], map[string]string{}), "717d07f8b36ec9eb6ada908edfe38e7fc248be853186dfa6c4ee37ca0d56d4ac"},
	} {
		if got := Hash(tt.item, "v0.3.0-300"); got != tt.want {
			t.Errorf("%s: Hash(%+v) = %s, want %s", tt.name, tt.item, got, tt.want)
		}
	}
}

// statement H13: the params that do not count, by the agent's version.
func TestParamsThatDoNotCountForTheHash(t *testing.T) {
	bare := Hash(with(hostOS[1], map[string]string{"playbook": "main.yaml"}), "")
	first, second := exemptParams[0].names, exemptParams[1].names
	if len(first)+len(second) != 7 {
		t.Fatalf("%d exempt params, want 7", len(first)+len(second))
	}
	for _, tt := range []struct {
		version       string
		first, second bool // the params of each row do not count
	}{
		{"", true, true},
		{"v0.3.0-300", true, true},
		{"0.3.0-258", true, true},
		{"0.3.0-257", true, false},
		{"v0.3.0-188", true, false},
		{"0.3.0-187", false, false},
		{"0.3.0-99", false, false}, // by number, not by text
		{"0.2.9-999", false, false},
		{"0.3.1-1", true, true},
		{"dev", true, true},
	} {
		for _, names := range []struct {
			list   []string
			exempt bool
		}{{first, tt.first}, {second, tt.second}} {
			for _, name := range names.list {
				params := map[string]string{"playbook": "main.yaml", name: "x"}
				before := maps.Clone(params)
				if got := Hash(with(hostOS[1], params), tt.version) == bare; got != names.exempt {
					t.Errorf("agent %q: %s is exempt = %t, want %t", tt.version, name, got, names.exempt)
				}
				if diff := cmp.Diff(before, params); diff != "" {
					t.Errorf("Hash changed its argument (-before +after):\n%s", diff)
				}
			}
		}
	}
	if Hash(with(hostOS[1], map[string]string{"playbook": "other.yaml"}), "") == bare {
		t.Error("another playbook has the same hash")
	}
}

func TestReady(t *testing.T) {
	it := hostOS[0]
	done := lcmv1.StateItemStatus{Hash: Hash(it, "")}
	for _, tt := range []struct {
		name   string
		status map[string]lcmv1.StateItemStatus
		want   bool
	}{
		{"never executed", nil, false},
		{"done", map[string]lcmv1.StateItemStatus{it.Name: done}, true},
		{"failed", map[string]lcmv1.StateItemStatus{it.Name: {Hash: done.Hash, ExitCode: 2}}, false},
		{"executed with other params", map[string]lcmv1.StateItemStatus{it.Name: {Hash: "f5"}}, false},
		{"another item is done", map[string]lcmv1.StateItemStatus{hostOS[1].Name: done}, false},
	} {
		if got := Ready(it, tt.status, ""); got != tt.want {
			t.Errorf("%s: Ready = %t, want %t", tt.name, got, tt.want)
		}
	}
}
