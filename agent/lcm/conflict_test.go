package lcm

import (
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/agent/ledger"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// An item that changes a file of another family fails with the conflict, and the file stays as
// the item has made it.
func TestItemThatChangesAFileOfAnotherFamilyFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f, s := newAPI(), newServer(t)
		s.write(t, "/etc/owned", "1", 0o644)
		if err := ledger.Claim(s, "MachineConfig rendered-worker-1", map[string][]byte{"/etc/owned": []byte("1")}); err != nil {
			t.Fatal(err)
		}
		f.change(machineWith(
			script("free", "echo 2 >"+s.path("/etc/free"), lcmv1.PhasePrepare),
			script("clash", "echo 2 >"+s.path("/etc/owned"), lcmv1.PhaseDeploy),
		))
		start(t, config(f, s))
		pass(time.Second)
		for range 2 { // the retry changes nothing more, and fails, too
			all := f.machine().Status.StateItemStatuses
			if got := all["free"]; got.ExitCode != 0 {
				t.Errorf("item free = %+v, want success", got)
			}
			want := "conflict: /etc/owned of MachineConfig rendered-worker-1"
			if got := all["clash"]; got.ExitCode != 1 || !strings.HasPrefix(got.Message, want) {
				t.Errorf("item clash = %d %q, want 1 and %q", got.ExitCode, got.Message, want)
			}
			pass(time.Minute)
		}
		if got := s.read(t, "/etc/owned"); got != "2\n" {
			t.Errorf("/etc/owned = %q, want what the item has written", got)
		}
	})
}
