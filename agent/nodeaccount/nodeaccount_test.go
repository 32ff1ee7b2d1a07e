package nodeaccount

import "testing"

func TestParse(t *testing.T) {
	for user, want := range map[string][2]string{
		User(Named, "w-0"):                  {Named, "w-0"},
		"system:serviceaccount:a:b":         {"a", "b"},
		"system:serviceaccount:a":           {"a", ""},
		"system:node:w-0":                   {},
		"oidc:system:serviceaccount:a:b":    {},
		User(Machines, OfMachine("a", "b")): {Machines, "a.b"},
	} {
		if namespace, name := Parse(user); namespace != want[0] || name != want[1] {
			t.Errorf("Parse(%q) = %q, %q; want %q", user, namespace, name, want)
		}
	}
}

func TestIsAgent(t *testing.T) {
	for _, tt := range []struct {
		namespace, name string
		want            bool
	}{
		{Machines, "a.b", true}, {"a", "m-0-lcm-agent", true}, {"a", LCMSuffix, false}, {Named, "w-0", false}, {"a", "b", false}, {"", "", false},
	} {
		if got := IsAgent(tt.namespace, tt.name); got != tt.want {
			t.Errorf("IsAgent(%q, %q) = %v, want %v", tt.namespace, tt.name, got, tt.want)
		}
	}
}
