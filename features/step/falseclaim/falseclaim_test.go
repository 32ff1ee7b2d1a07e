package falseclaim

import (
	"context"
	"errors"
	"testing"

	"github.com/cucumber/godog"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestScenariosThatFailAtTheirLastStepAreReturned(t *testing.T) {
	onIt := errors.New("it is on")
	type lampKey struct{}
	last := func(ctx context.Context) context.Context { return context.WithValue(ctx, lampKey{}, onIt) }
	feature := []byte(`
Feature: Lamps
  @lamp
  Scenario: A lamp that is on is off
    When it is switched on
    Then it is off

  Scenario: A lamp that is missing is off
    When it is missing
    Then it is off
`)
	got := Run(t, feature, 1, func(sc *godog.ScenarioContext) {
		sc.Step("^it is switched on$", func() {})
		sc.Step("^it is missing$", func() error { return godog.ErrSkip })
		sc.Step("^it is off$", func(ctx context.Context) error { return ctx.Value(lampKey{}).(error) })
	}, last)
	want := []Claim{{Scenario: "A lamp that is on is off", Tags: []string{"lamp"}, Step: "it is off", Err: onIt}}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("Run (-want +got):\n%s", diff)
	}
	all, err := List(feature)
	want = []Claim{{Scenario: "A lamp that is on is off", Tags: []string{"lamp"}, Step: "it is off"}, {Scenario: "A lamp that is missing is off", Step: "it is off"}}
	if diff := cmp.Diff(want, all); diff != "" || err != nil {
		t.Errorf("List: %v (-want +got):\n%s", err, diff)
	}
}
