package redfish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func TestPatchWithSomeInvalidPropertiesReturns200WithExtendedInfo(t *testing.T) {
	s := newService(t, newHost(t))
	w := call(t, s, "admin", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Pxe"},"BogusProp":"x","PowerState":"On"}`)
	var got struct {
		ETag     string `json:"@odata.etag"`
		All      []info `json:"@Message.ExtendedInfo"`
		Bogus    []info `json:"BogusProp@Message.ExtendedInfo"`
		Readonly []info `json:"PowerState@Message.ExtendedInfo"`
		Boot     struct{ BootSourceOverrideTarget string }
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &got))
	if w.Code != 200 || len(got.All) != 2 || len(got.Bogus) != 1 || len(got.Readonly) != 1 || got.Boot.BootSourceOverrideTarget != "Pxe" {
		t.Fatalf("%s", shape("PATCH", sys, "", w))
	}
	if _, etag := get(t, s, sys); etag != got.ETag || etag != w.Header().Get("ETag") {
		t.Errorf("ETag %s, in the response %s and %s", etag, got.ETag, w.Header().Get("ETag"))
	}
	if _, err := openBundle(); err == nil {
		newSchemas(t).check(t, "partial success", "ComputerSystem.v1_27_0", w.Body.Bytes())
	}
}

func TestHostFailureReturns500AndIsLogged(t *testing.T) {
	h := newHost(t)
	h.fail = errors.New("store: disk full")
	var log bytes.Buffer
	var entries []Entry
	entered, left := 0, 0
	s, err := New(Config{
		Rack: rack{h}, Log: slog.New(slog.NewTextHandler(&log, nil)), Journal: func(_ context.Context, e Entry) { entries = append(entries, e) },
		OnRequestStart: func() { entered++ }, OnRequestEnd: func() { left++ },
	})
	must(t, err)
	w := call(t, s, "operator", "PATCH", sys, `{"Boot":{"BootSourceOverrideTarget":"Cd"}}`)
	if keys, _ := errorOf(t, w); w.Code != 500 || keys[0] != "InternalError" || strings.Contains(w.Body.String(), "disk") {
		t.Errorf("%s", shape("PATCH", sys, "", w))
	}
	if !strings.Contains(log.String(), "disk full") || strings.Contains(log.String(), "secret") {
		t.Errorf("log:\n%s", log.String())
	}
	want := []Entry{{
		At: h.now, Host: h, From: "192.0.2.1", Method: "PATCH", Path: sys, Status: 500, User: "operator",
		In: int64(len(`{"Boot":{"BootSourceOverrideTarget":"Cd"}}`)), Out: int64(w.Body.Len()),
	}}
	if !slices.Equal(entries, want) {
		t.Errorf("journal: %+v, want %+v", entries, want)
	}
	if entered != 1 || left != 1 {
		t.Errorf("entered %d, left %d", entered, left)
	}
}

func TestHostErrorsMapToHTTPStatus(t *testing.T) {
	for _, tt := range []struct {
		fails  error
		status int
		key    string
	}{
		{fmt.Errorf("lab: %w", ErrBusy), 503, "ServiceTemporarilyUnavailable"},
		{context.Canceled, 503, "ServiceTemporarilyUnavailable"},
		{context.DeadlineExceeded, 503, "OperationTimeout"},
		{bmc.ErrNotFound, 404, "ResourceMissingAtURI"},
	} {
		h := newHost(t)
		h.fail = tt.fails
		w := call(t, newService(t, h), "admin", "PATCH", "/redfish/v1/SessionService", `{"SessionTimeout":60}`)
		keys, _ := errorOf(t, w)
		if w.Code != tt.status || keys[0] != tt.key || (w.Header().Get("Retry-After") != "") != (tt.status == 503) {
			t.Errorf("%v: %s; want %d %s", tt.fails, shape("PATCH", "SessionService", "", w), tt.status, tt.key)
		}
	}
}
