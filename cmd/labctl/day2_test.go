package main

import (
	"context"
	"errors"
	"testing"
)

func TestTimeoutOfTheDemonstrationNamesWhatItWaitsFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := new(day2).until(ctx, "the Nodes are Ready", func() (bool, error) {
		cancel()
		return false, errors.New("GET nodes: the context has ended")
	})
	if want := "waiting until the Nodes are Ready: context canceled"; err == nil || err.Error() != want {
		t.Errorf("until = %v, want %q", err, want)
	}
	refused := errors.New("refused")
	if err := new(day2).until(t.Context(), "", func() (bool, error) { return false, refused }); !errors.Is(err, refused) {
		t.Errorf("until = %v, want the error of its step", err)
	}
}
