package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// bare is a root without files.
type bare struct{}

func (bare) ReadFile(string) ([]byte, error) { return nil, fs.ErrNotExist }

// A registry that refuses the account is reported in another way than one that has no such image, or
// that does not work: the first needs another pull secret.
func TestRefusedAccountIsARefusedError(t *testing.T) {
	for status, want := range map[int]bool{
		http.StatusUnauthorized: true, http.StatusForbidden: true,
		http.StatusNotFound: false, http.StatusBadRequest: false, http.StatusInternalServerError: false,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v2/" {
					return
				}
				w.WriteHeader(status)
			}))
			defer s.Close()
			host := strings.TrimPrefix(s.URL, "http://")
			err := Client{Files: bare{}}.Check(t.Context(), host+"/os@sha256:"+strings.Repeat("0", 64), nil)
			if err == nil {
				t.Fatal("Check = nil, want an error")
			}
			if refused := errors.As(err, new(*RefusedError)); refused != want {
				t.Errorf("Check = %v, a RefusedError: %v, want %v", err, refused, want)
			}
		})
	}
}
