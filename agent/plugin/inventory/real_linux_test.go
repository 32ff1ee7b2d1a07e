package inventory_test

import (
	"testing"

	"github.com/metalab-dev/metalab/agent/plugin/inventory"
	"github.com/metalab-dev/metalab/agent/sys"
)

// TestThisMachine reads the machine that runs the test, which surely has a
// processor and memory.
func TestThisMachine(t *testing.T) {
	h, err := inventory.Collect(t.Context(), sys.Linux{})
	if err != nil {
		t.Fatal(err)
	}
	if h.CPU.Count == 0 || h.RAMMiB == 0 || h.CPU.Arch == "" {
		t.Errorf("inventory = %+v, want a CPU and memory", h)
	}
}
