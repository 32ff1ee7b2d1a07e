package clientclock

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// A client that computes after a wait loses no lab time, and its request lets the lab go on.
func TestLabWaitsForTheRequestAfterAWait(t *testing.T) {
	lab := clock.NewJumping(time.Unix(0, 0))
	go func() { _ = lab.Run(t.Context()) }()
	passed := make(chan struct{})
	lab.AfterFunc(time.Hour, func() { close(passed) })
	c := New(lab)
	<-c.After(time.Minute)
	spin := time.Now()
	for time.Since(spin) < maxHold/2 { // many times what the lab takes for silence
		select {
		case <-passed:
			t.Fatal("the lab has jumped before the client's request")
		default:
		}
	}
	if got := c.Now().Sub(time.Unix(0, 0)); got < time.Minute || got > time.Minute+time.Second {
		t.Errorf("after the wait the lab's time is %v, want 1m", got)
	}
	answered := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(answered) }))
	defer s.Close()
	req, err := http.NewRequestWithContext(c.Trace(t.Context()), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-answered
	select {
	case <-passed:
	case <-patience.Within(t, time.Minute).Done():
		t.Error("the lab does not go on after the request")
	}
}
