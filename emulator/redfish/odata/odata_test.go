package odata

import "testing"

func TestUnsupportedParametersAreFound(t *testing.T) {
	all := Features{TopSkip: true, Expand: true, Select: true, Filter: true}
	for _, tt := range []struct {
		features Features
		query    string
		want     string // "" for none
	}{
		{Features{}, "", ""}, {Features{}, "only&x=$top", ""}, {Features{}, "$top=1", "$top"}, {Features{}, "a=1&%24skip=2", "$skip"},
		{Features{}, "$", "$"}, {Features{}, "%zz&$x", "$x"}, {Features{TopSkip: true}, "$top=1&$skip=1&$expand=.", "$expand"},
		{all, "$top=1&$skip=1&$expand=.&$select=a&$filter=b", ""}, {all, "$Top=1", "$Top"}, {all, "$levels=1", "$levels"},
	} {
		if got, found := tt.features.Unsupported(tt.query); got != tt.want || found != (tt.want != "") {
			t.Errorf("%+v.Unsupported(%q) = %q, %t; want %q", tt.features, tt.query, got, found, tt.want)
		}
	}
}
