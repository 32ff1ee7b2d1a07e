package redfish

import "testing"

func TestDecodeSkipsALeadingErrorDocument(t *testing.T) {
	const failure = `{"error":{"code":"Base.1.0.GeneralError","@Message.ExtendedInfo":[{"MessageId":"Base.1.0.InternalError"}]}}`
	for _, tt := range []struct{ name, body, want string }{
		{"one", `{"@odata.id":"/a","Id":"a"}`, "a"},
		{"an error before it", failure + "\n" + `{"@odata.id":"/a","Id":"a"}`, "a"},
		{"something behind it", `{"@odata.id":"/a","Id":"a"}{"Id":"b"}`, "a"},
		{"an error alone", failure, ""},
		{"a property of that name", `{"@odata.id":"/a","Id":"a","error":{}} {"Id":"b"}`, "a"},
	} {
		var r struct {
			ID string `json:"Id"`
		}
		if err := decode([]byte(tt.body), &r); err != nil || r.ID != tt.want {
			t.Errorf("%s: decode(%s) = %q, %v, want %q", tt.name, tt.body, r.ID, err, tt.want)
		}
	}
	var r struct {
		ID string `json:"Id"`
	}
	if err := decode([]byte(failure+`{"Id":`), &r); err == nil {
		t.Error("half a resource is taken")
	}
}
