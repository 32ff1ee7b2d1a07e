package item

import (
	"maps"
	"strings"
	"testing"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

func TestTimeoutOfAnnotations(t *testing.T) {
	if got, err := Timeout(map[string]string{"other": "1"}); got != "" || err != nil {
		t.Errorf("Timeout without the annotation = %q, %v", got, err)
	}
	for text, valid := range map[string]bool{"90m": true, "1h30m": true, "500ms": true, "0s": false, "-1h": false, "90": false, "": false, "1 hour": false} {
		got, err := Timeout(map[string]string{TimeoutAnnotation: text})
		if valid && (got != text || err != nil) || !valid && (got != "" || err == nil || !strings.Contains(err.Error(), "annotation metalab.dev/item-timeout \""+text+"\": give a duration above zero")) {
			t.Errorf("Timeout(%q) = %q, %v, want valid: %v", text, got, err, valid)
		}
	}
}

// Another deadline executes no host OS item again; that of a release's item is a part of it.
func TestDeadlineAndHash(t *testing.T) {
	for _, tt := range []struct {
		item lcmv1.LCMStateItem
		same bool
	}{
		{hostOS[1], true},
		{lcmv1.LCMStateItem{Runner: lcmv1.RunnerAnsible, Name: "kubelet", Version: "v1", Phase: lcmv1.PhaseReconfigure}, false},
	} {
		params := map[string]string{ParamPlaybook: "main.yaml"}
		without := Hash(with(tt.item, maps.Clone(params)), "")
		params[ParamTimeout] = "2h"
		if got := Hash(with(tt.item, params), ""); (got == without) != tt.same {
			t.Errorf("%s: the hash is the same with a deadline: %v, want %v", tt.item.Name, got == without, tt.same)
		}
		if params[ParamTimeout] != "2h" {
			t.Errorf("%s: Hash changed its argument", tt.item.Name)
		}
	}
}
