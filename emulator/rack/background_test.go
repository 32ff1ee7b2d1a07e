package rack

import (
	"context"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

func TestBackgroundWorkRunsAtItsTime(t *testing.T) {
	c := clock.NewVirtual(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC))
	e := background{clock: c}
	begin, done := c.Now(), make(chan time.Duration, 3)
	for _, after := range []time.Duration{0, time.Minute, time.Hour} {
		e.after(after, func(context.Context) { done <- c.Now().Sub(begin) })
	}
	if at := <-done; at != 0 {
		t.Errorf("what is due at once was done after %v", at)
	}
	if err := c.Walk(t.Context(), 30*time.Minute); err != nil {
		t.Fatal(err)
	}
	if at := <-done; at != time.Minute {
		t.Errorf("what is due after a minute was done after %v", at)
	}
	e.stop()
	e.after(0, func(context.Context) { t.Error("a function ran after stop") })
	if err := c.Walk(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(done) != 0 {
		t.Error("a function that was scheduled after stop ran")
	}
}

// stop waits for the functions that are running.
func TestStopWaitsForBackgroundWork(t *testing.T) {
	e := background{clock: clock.NewVirtual(time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC))}
	begun, goOn, done := make(chan bool), make(chan bool), false
	e.after(0, func(context.Context) {
		close(begun)
		<-goOn
		done = true
	})
	<-begun
	ended := make(chan bool)
	go func() {
		e.stop()
		close(ended)
	}()
	close(goOn)
	<-ended
	if !done {
		t.Error("the end did not wait")
	}
}
