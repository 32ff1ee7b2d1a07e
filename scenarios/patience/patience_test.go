package patience

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFactorMultipliesBounds(t *testing.T) {
	for _, tt := range []struct {
		env  string
		want time.Duration // expected bound for a minute
		bad  bool
	}{
		{"", time.Minute, false},
		{"1", time.Minute, false},
		{"2.5", 150 * time.Second, false},
		{"0.5", 30 * time.Second, false},
		{"1e30", 1<<63 - 1, false},
		{"0", time.Minute, true},
		{"-1", time.Minute, true},
		{"NaN", time.Minute, true},
		{"+Inf", time.Minute, true},
		{"2x", time.Minute, true},
	} {
		t.Setenv(Env, tt.env)
		if got := Of(time.Minute); got != tt.want {
			t.Errorf("Of(1m) with %s=%q = %v, want %v", Env, tt.env, got, tt.want)
		}
		err := Until(t.Context(), time.Minute, func(context.Context) (bool, string, error) { return true, "", nil })
		if (err != nil) != tt.bad || tt.bad && !strings.Contains(err.Error(), fmt.Sprintf("METALAB_PATIENCE is %q: it must be a positive number", tt.env)) {
			t.Errorf("Until() with %s=%q: %v", Env, tt.env, err)
		}
	}
}

func TestUntilSaysWhatItSawLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		err := Until(t.Context(), time.Minute, func(ctx context.Context) (bool, string, error) {
			looks++
			return false, fmt.Sprintf("look %d", looks), nil
		})
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Until(1m) took %v", took)
		}
		if want := "patience has run out: 1m0s (last: look "; !errors.Is(err, ErrLimit) || !strings.HasPrefix(fmt.Sprint(err), want) || strings.Contains(err.Error(), "look 1)") {
			t.Errorf("Until() = %v, want %s...", err, want)
		}
		looks = 0
		if err := Until(t.Context(), time.Minute, func(context.Context) (bool, string, error) { looks++; return looks == 3, "", nil }); err != nil || looks != 3 {
			t.Errorf("Until() = %v after %d looks, want none after 3", err, looks)
		}
	})
}

// A look that the bound interrupts fails for the bound: what it returns is about that.
func TestUntilKeepsWhatItSawBeforeTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		err := Until(t.Context(), time.Minute, func(ctx context.Context) (bool, string, error) {
			if looks++; looks == 1 {
				return false, "the server is off", nil
			}
			<-ctx.Done()
			return false, "nothing", ctx.Err()
		})
		if !errors.Is(err, ErrLimit) || !strings.HasSuffix(fmt.Sprint(err), "(last: the server is off)") {
			t.Errorf("Until() = %v, want %v and what was seen before", err, ErrLimit)
		}
	})
}

func TestUntilEndsWithAnErrorAndWithItsContext(t *testing.T) {
	broken := errors.New("broken")
	err := Until(t.Context(), time.Minute, func(context.Context) (bool, string, error) { return false, "a crack", broken })
	if !errors.Is(err, broken) || err.Error() != "broken (last: a crack)" {
		t.Errorf("Until() = %v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if err := Until(ctx, time.Minute, func(context.Context) (bool, string, error) { return false, "", nil }); !errors.Is(err, broken) || errors.Is(err, ErrLimit) {
		t.Errorf("Until() = %v, want %v", err, broken)
	}
}

// recorder records the message that ends a test.
type recorder struct {
	*testing.T
	message string
}

func (r *recorder) Fatalf(format string, args ...any) { r.message = fmt.Sprintf(format, args...) }

func TestAwaitShowsWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, failed := &struct{ Power *string }{}, error(nil)
		r := &recorder{T: t}
		began := time.Now()
		Await(r, "the server is on", func() bool {
			off := "Off"
			server.Power, failed = &off, errors.New("no answer")
			return false
		}, server, &failed)
		if took := time.Since(began); took != Limit() {
			t.Errorf("Await() took %v, want %v", took, Limit())
		}
		if want := fmt.Sprintf(`the server is on: patience has run out: %s (last: {"Power":"Off"}; no answer)`, Limit()); r.message != want {
			t.Errorf("Await() says %q, want %q", r.message, want)
		}
	})
}

func TestWithinEndsWithTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := Within(t, time.Hour)
		began := time.Now()
		<-ctx.Done()
		if took := time.Since(began); took != Of(time.Hour) || !errors.Is(context.Cause(ctx), ErrLimit) {
			t.Errorf("Within(1h) ended after %v with %v", took, context.Cause(ctx))
		}
	})
}
