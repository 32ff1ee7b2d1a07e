package odata

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQueryParsing(t *testing.T) {
	little := Support{TopSkip: true, ExpandRest: true}
	for _, tt := range []struct {
		support   Support
		query     string
		parameter string // parameter that the error names; "" for none
		why       Why
	}{
		{query: ""}, {query: "&&"}, {query: "a=1&top=2&%zz=3"},
		{query: "$top=1&$skip=0&$expand=.&$select=Name&$filter=Id%20eq%20'1'&excerpt"},
		{query: "only"}, {query: "only="}, {query: "only&unknown=1"}, {query: "excerpt="},
		{query: "$top=0"}, {query: "$top=99999999999999999999"}, {query: "%24top=2"},
		{query: "$expand=*"}, {query: "$expand=~($levels=6)"}, {query: "$expand=.(%24levels%3D2)"},
		{query: "$select=*"}, {query: "$select=Name,%20Status/State"},

		{query: "$Top=1", parameter: "$Top", why: Unsupported},
		{query: "a=1&%24count=true", parameter: "$count", why: Unsupported},
		{query: "$", parameter: "$", why: Unsupported},
		{query: "%zz&$x", parameter: "$x", why: Unsupported},
		{query: "$top", parameter: "$top", why: Type},
		{query: "$top=x", parameter: "$top", why: Type},
		{query: "$top=1.5", parameter: "$top", why: Type},
		{query: "$top=-1", parameter: "$top", why: Range},
		{query: "$skip=-99999999999999999999", parameter: "$skip", why: Range},
		{query: "$top=%zz", parameter: "$top", why: Form},
		{query: "$top=1&$top=1", parameter: "$top", why: Combination},
		{query: "only=yes", parameter: "only", why: Form},
		{query: "only&only", parameter: "only", why: Combination},
		{query: "only&$select=Name", parameter: "only", why: Combination},
		{query: "$expand=.&only", parameter: "only", why: Combination},
		{query: "excerpt=1", parameter: "excerpt", why: Form},
		{query: "$expand", parameter: "$expand", why: Form},
		{query: "$expand=Thermal", parameter: "$expand", why: Form},
		{query: "$expand=($levels=1)", parameter: "$expand", why: Form},
		{query: "$expand=.($levels=1", parameter: "$expand", why: Form},
		{query: "$expand=.(levels=1)", parameter: "$expand", why: Form},
		{query: "$expand=.($levels=0)", parameter: "$levels", why: Range},
		{query: "$expand=.($levels=7)", parameter: "$levels", why: Range},
		{query: "$expand=.($levels=99999999999999999999)", parameter: "$levels", why: Range},
		{query: "$expand=.($levels=max)", parameter: "$levels", why: Type},
		{query: "$expand=.($levels=)", parameter: "$levels", why: Type},
		{query: "$select=", parameter: "$select", why: Form},
		{query: "$select=Name,", parameter: "$select", why: Form},
		{query: "$select=Status//State", parameter: "$select", why: Form},
		{query: "$select=Name($top=1)", parameter: "$select", why: Form},
		{query: "$filter=", parameter: "$filter", why: Form},

		{support: little, query: "$top=1&$expand=.&only=maybe&excerpt=x"},
		{support: little, query: "$filter=Id%20eq%20'1'", parameter: "$filter", why: Unsupported},
		{support: little, query: "$select=Id", parameter: "$select", why: Unsupported},
		{support: little, query: "$expand=*", parameter: "$expand", why: Unsupported},
		{support: little, query: "$expand=.($levels=1)", parameter: "$levels", why: Unsupported},
		{support: Support{TopSkip: true}, query: "$expand=.", parameter: "$expand", why: Unsupported},
	} {
		if tt.support == (Support{}) {
			tt.support = Everything
		}
		_, err := tt.support.Parse(tt.query)
		var e *Error
		if errors.As(err, &e); e == nil {
			e = &Error{}
		}
		if e.Parameter != tt.parameter || e.Why != tt.why || e.Why == Range && e.Range == "" {
			t.Errorf("Parse(%q) = %+v, want %q %q", tt.query, e, tt.parameter, tt.why)
		}
	}
}

func TestNextLinkKeepsQueryOptions(t *testing.T) {
	q, err := Everything.Parse("x=1&$filter=Name+ne+%27a%26b%27&$skip=2&%24select=Name")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("$filter=Name%20ne%20'a%26b'&$select=Name&$skip=7", q.link(7)); diff != "" {
		t.Errorf("link (-want +got):\n%s", diff)
	}
}

func TestQueryOfResource(t *testing.T) {
	for query, want := range map[string]bool{"": true, "x=1": true, "$select=Name": true, "excerpt&$select=Name": true, "$expand=.": false, "only": false, "$top=1": false} {
		q, err := Everything.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.OfResource(); got != want {
			t.Errorf("Parse(%q).OfResource() = %t, want %t", query, got, want)
		}
	}
}
