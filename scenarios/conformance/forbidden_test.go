package conformance

import (
	"errors"
	"fmt"
	"testing"
)

// The address of an image may have the number in its port.
func TestForbiddenIsAStatus(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&Finding{Text: "refused: 400 Bad Request, no http://127.0.0.1:39403/a.iso here", Status: 400}, false},
		{&Finding{Text: "refused: no license", Status: 403}, true},
		{fmt.Errorf("insert: %w", &Finding{Status: 403}), true},
		{Findingf("403"), false},
		{errors.New("403"), false},
		{nil, false},
	} {
		if got := forbidden(tt.err); got != tt.want {
			t.Errorf("forbidden(%v) = %v", tt.err, got)
		}
	}
}
