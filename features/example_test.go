package features_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cucumber/godog"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/features/steps"
)

// externalFeature is a feature of another suite, for an inventory that watches
// hosts.
const externalFeature = `
Feature: Our inventory
  Scenario: The inventory knows a server after its inspection
    Given a lab with 1 server
    When the operator registers the server
    Then our inventory knows the server's 2 disks
    And our inventory has a host for each server of the lab
    When we mark the host as "theirs"
    And the operator deletes the host
    Then the host is deleted
`

// Another suite registers these steps beside its own, which use the lab of the
// scenario.
func TestStepsAreUsableInAnotherSuite(t *testing.T) {
	suite := godog.TestSuite{
		ScenarioInitializer: func(sc *godog.ScenarioContext) {
			lab := steps.Register(sc)
			sc.Step(`^our inventory knows the server's (\d+) disks$`, func(ctx context.Context, disks int) error {
				return steps.Eventually(ctx, "the inventory knows the disks", func(ctx context.Context) (bool, string, error) {
					h, err := lab.Host(ctx)
					if err != nil || h.Status.HardwareDetails == nil {
						return false, "nothing was inspected", err
					}
					got := len(h.Status.HardwareDetails.Storage)
					return got == disks, fmt.Sprintf("%s has %d disks", lab.Server().Name, got), nil
				})
			})
			sc.Step(`^our inventory has a host for each server of the lab$`, func(ctx context.Context) error {
				var hosts metal3.BareMetalHostList
				if err := lab.Kubernetes().List(ctx, &hosts); err != nil {
					return err
				}
				st, err := lab.Lab().Control().Status(ctx)
				if want := len(lab.Servers()); err == nil && (len(hosts.Items) != want || st.Hosts != want) {
					err = fmt.Errorf("there are %d hosts, and the lab has %d servers, want %d of both", len(hosts.Items), st.Hosts, want)
				}
				return err
			})
			sc.Step(`^we mark the host as "([^"]*)"$`, func(ctx context.Context, owner string) error {
				return lab.Change(ctx, func(h *metal3.BareMetalHost) { h.Spec.Description = owner })
			})
		},
		Options: &godog.Options{
			Format: "progress", TestingT: t, Strict: true, NoColors: true,
			FeatureContents: []godog.Feature{{Name: "theirs.feature", Contents: []byte(externalFeature)}},
		},
	}
	if suite.Run() != 0 {
		t.Fatal("the suite failed")
	}
}
