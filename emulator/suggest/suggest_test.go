package suggest

import "testing"

func TestDidYouMeanNamesWhatIsClose(t *testing.T) {
	names := []string{"generic", "dell-r750", "dell-r760", "raid", "down", "ForceOff", "GracefulShutdown"}
	for name, want := range map[string]string{
		"genric": ". Did you mean generic?", "dell-r770": ". Did you mean dell-r750 or dell-r760?", "toaster": "", "Raid": ". Did you mean raid?", "gen": ". Did you mean generic?", "": "",
		"dwon": ". Did you mean down?", "Off": ". Did you mean ForceOff?", "rs": "",
	} {
		if got := DidYouMean(name, names); got != want {
			t.Errorf("DidYouMean(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestClosestIsTheTextWithTheFewestDifferences(t *testing.T) {
	texts := []string{"the host becomes TEXT", "the server is off", "a lab with NUMBER servers"}
	for text, want := range map[string]int{"the host is TEXT": 0, "The server is OFF": 1, "a lab of NUMBER hosts": 2, "": 1} {
		if got := Closest(text, texts); got != want {
			t.Errorf("Closest(%q) = %d, want %d", text, got, want)
		}
	}
	if got := Closest("x", nil); got != -1 {
		t.Errorf("Closest among none = %d, want -1", got)
	}
}

func TestUseOneOfListsSomeNames(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"node-0", "node-1"}, ": use one of node-0, node-1. Did you mean node-1 or node-0?"},
		{[]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}, ": use one of a, b, c, d, e, f, g, h and 2 more"},
	} {
		if got := UseOneOf("nod-1", tt.names); got != tt.want {
			t.Errorf("UseOneOf(nod-1, %q) = %q, want %q", tt.names, got, tt.want)
		}
	}
}
