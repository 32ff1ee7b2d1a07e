// Package patience bounds how long tests wait, in real time, for what they cannot step
// to: a process, a controller, a container. A bound is there to end a test that will never
// pass, and not to measure: it is generous, METALAB_PATIENCE multiplies all bounds on a
// machine that is slower still, and a wait that fails says what it saw last. The package
// knows nothing of what it waits for.
package patience

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Env is an environment variable: a positive number, by which bounds are multiplied. The
// default is 1.
const Env = "METALAB_PATIENCE"

const (
	base   = 3 * time.Minute       // a play of Ansible takes more than a minute beside ten other labs
	often  = 5 * time.Millisecond  // between two looks of Until
	seldom = 20 * time.Millisecond // between two looks of Await, which often ask a server
)

// ErrLimit is the error of a wait that has reached its bound.
var ErrLimit = errors.New("patience has run out")

// factor returns the number that Env names.
func factor() (float64, error) {
	text := os.Getenv(Env)
	if text == "" {
		return 1, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return 1, fmt.Errorf("%s is %q: it must be a positive number", Env, text)
	}
	return f, nil
}

// Limit is how long a test waits for one thing.
func Limit() time.Duration { return Of(base) }

// Of returns d as Env multiplies it, for a wait that is known to be longer or shorter than
// others. Where Env is no number it returns d: Until and Within say so.
func Of(d time.Duration) time.Duration {
	f, _ := factor()
	if product := float64(d) * f; product < math.MaxInt64 {
		return time.Duration(product)
	}
	return math.MaxInt64
}

// Within returns a context of the test that ends after Of(d), with ErrLimit.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	if _, err := factor(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), Of(d), fmt.Errorf("%w: %s", ErrLimit, Of(d)))
	t.Cleanup(cancel)
	return ctx
}

// Until repeats look until it is done or has an error, for at most limit, which is a result
// of Limit or Of. Its error has the last text that look has returned.
func Until(ctx context.Context, limit time.Duration, look func(context.Context) (done bool, saw string, err error)) error {
	last := ""
	err := poll(ctx, limit, often, func(ctx context.Context) (bool, error) {
		done, saw, err := look(ctx)
		if ctx.Err() == nil { // else it is about the time-out
			last = saw
		}
		return done, err
	})
	if err != nil {
		return fmt.Errorf("%w (last: %s)", err, last)
	}
	return nil
}

// Await returns when is returns true. The test fails after Limit, and shows what was seen:
// pointers to what is looks at.
func Await(t testing.TB, what string, is func() bool, seen ...any) {
	t.Helper()
	err := poll(t.Context(), Limit(), seldom, func(context.Context) (bool, error) { return is(), nil })
	if err == nil {
		return
	}
	var last []string
	for _, x := range seen {
		last = append(last, show(x))
	}
	t.Fatalf("%s: %v (last: %s)", what, err, strings.Join(last, "; "))
}

func poll(ctx context.Context, limit, period time.Duration, look func(context.Context) (bool, error)) error {
	if _, err := factor(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: %s", ErrLimit, limit))
	defer cancel()
	again := time.NewTicker(period)
	defer again.Stop()
	for {
		done, err := look(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case done || err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

// show returns the text of a value, or of what a pointer points to.
func show(x any) string {
	if v := reflect.ValueOf(x); v.Kind() == reflect.Pointer && !v.IsNil() {
		x = v.Elem().Interface()
	}
	if err, ok := x.(error); ok {
		return err.Error()
	}
	if text, err := json.Marshal(x); err == nil { // it follows pointers, which %+v does not
		return string(text)
	}
	return fmt.Sprintf("%+v", x)
}
