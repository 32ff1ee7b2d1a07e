package rack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// tape records log output.
type tape struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *tape) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// Secrets that clients send appear in no response, log, journal or task.
func TestPasswordsAndKeysSurviveARestart(t *testing.T) {
	logged := new(tape)
	l := racktest.Start(t, rack.Config{Log: slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	h := l.First()
	user, password := l.Credentials(h)
	var answers bytes.Buffer
	token := ""
	ask := func(method, path, body string, header ...string) (*http.Response, map[string]any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case len(header) > 0:
			r.SetBasicAuth(header[0], header[1])
		case token != "":
			r.Header.Set("X-Auth-Token", token)
		}
		r.Header.Set("Content-Type", "application/json")
		w, err := l.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		b, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&answers, "%s %s\n%s\n", method, path, b)
		var o map[string]any
		_ = json.Unmarshal(b, &o) // no body, or not JSON
		return w, o
	}
	const (
		accounts = "/redfish/v1/AccountService/Accounts"
		sessions = "/redfish/v1/SessionService/Sessions"
		insert   = "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
	)
	w, _ := ask("POST", sessions, fmt.Sprintf(`{"UserName":%q,"Password":%q}`, user, password))
	token = w.Header.Get("X-Auth-Token")
	der, key := certificate(t, h)
	if _, err := h.ApplyBMC(t.Context(), bmc.InstallHTTPS{Chain: [][]byte{der}, Key: key}); err != nil {
		t.Fatal(err)
	}
	l.Client.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true // the certificate is not from the rack's authority
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer images.Close()
	ask("POST", accounts, `{"UserName":"new","Password":"hush-hush-1","RoleId":"Operator"}`)
	ask("POST", accounts, `{"UserName":"new","Password":"hush-hush-2","RoleId":"Operator"}`)
	ask("POST", accounts, `{"UserName":"new2","Password":["hush-hush-3"],"RoleId":"Operator"}`)
	ask("PATCH", accounts+"/2", `{"Password":"hush-hush-4","Bogus":1}`)
	ask("PATCH", accounts+"/2", `{"Password":"hush-4"}`)
	ask("POST", accounts+"/2/Actions/ManagerAccount.ChangePassword", `{"NewPassword":"hush-hush-5","SessionAccountPassword":"hush-hush-6"}`)
	ask("POST", sessions, `{"UserName":"new","Password":"hush-hush-7"}`)
	ask("GET", "/redfish/v1/Systems", "", "new", "hush-hush-8")
	ask("POST", insert, `{"Image":"http://u:hush-hush-9@`+images.Listener.Addr().String()+`/x.iso"}`)
	ask("POST", insert, `{"Image":"`+images.URL+`/x.iso","UserName":"u","Password":"hush-hush-10"}`)
	ask("POST", "/redfish/v1/Managers/1/NetworkProtocol/HTTPS/Certificates", `{"CertificateType":"PEM","CertificateString":"hush-hush-11"}`)

	todo, seen := []string{"/redfish/v1/"}, map[string]bool{}
	for len(todo) > 0 && len(seen) < 2000 {
		at, _, _ := strings.Cut(todo[0], "#")
		todo = todo[1:]
		if seen[at] {
			continue
		}
		seen[at] = true
		_, body := ask("GET", at, "")
		todo = append(todo, addresses(body)...)
	}
	if len(seen) < 100 {
		t.Errorf("%d resources were read", len(seen))
	}
	entries, _, err := l.Journal().Select(journal.Query{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	view, err := json.Marshal(h.BMC()) // tasks, logs and everything else that services see
	if err != nil {
		t.Fatal(err)
	}
	logged.mu.Lock()
	defer logged.mu.Unlock()
	for where, text := range map[string]string{"answers": answers.String(), "the journal": string(raw), "the BMC's view": string(view), "the log": logged.b.String()} {
		for _, secret := range []string{"hush", password, token, "PRIVATE KEY"} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s: …%s…", where, text[max(0, i-200):min(len(text), i+50)])
			}
		}
	}
}

// addresses returns every @odata.id in a body.
func addresses(value any) []string {
	var out []string
	switch x := value.(type) {
	case []any:
		for _, y := range x {
			out = append(out, addresses(y)...)
		}
	case map[string]any:
		for name, y := range x {
			if text, ok := y.(string); ok && name == "@odata.id" {
				out = append(out, text)
			}
			out = append(out, addresses(y)...)
		}
	}
	return out
}

// A slot with VerifyCertificate takes images only from trusted servers.
func TestInsertMediaTrustsInstalledCertificates(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "an image") }))
	defer srv.Close()
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	apply := func(c bmc.Command) error {
		_, err := h.ApplyBMC(t.Context(), c)
		return err
	}
	must := func(c bmc.Command) {
		t.Helper()
		if err := apply(c); err != nil {
			t.Fatal(err)
		}
	}
	must(insert(srv.URL + "/a.iso"))
	must(bmc.EjectMedia{Slot: "Cd"})
	must(bmc.VerifyMedia{Slot: "Cd", Verify: true})
	if err := apply(insert(srv.URL + "/a.iso")); err == nil {
		t.Error("a slot that verifies took an image from a stranger")
	}
	must(bmc.Trust{Store: bmc.MediaStore("Usb"), Chain: [][]byte{srv.Certificate().Raw}})
	if err := apply(insert(srv.URL + "/a.iso")); err == nil {
		t.Error("a slot trusts whom another one trusts")
	}
	must(bmc.Trust{Store: bmc.MediaStore("Cd"), Chain: [][]byte{srv.Certificate().Raw}})
	must(insert(srv.URL + "/a.iso"))
	if got := holds(t, h); got != "an image" {
		t.Errorf("the slot holds %q", got)
	}
}
