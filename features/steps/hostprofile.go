package steps

import (
	"context"
	"fmt"
	"strings"

	"github.com/cucumber/godog"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
)

// machineUserData is the name of a scenario's Secret with user data.
const machineUserData = "user-data"

// registerHostProfiles binds the steps on BareMetalHostProfiles and the user data of Machines.
func (s *scenario) registerHostProfiles(sc *stepRegistry) {
	sc.Step(`^the host profile "([^"]*)" is:$`, "creates or replaces a BareMetalHostProfile with this spec", s.writeHostProfile)
	sc.Step(`^the user data of the Secret "user-data" are:$`, "creates or replaces the Secret, with the text in its key userData", s.writeUserData)
	sc.Step(`^the operator adds the machine "([^"]*)" with:$`, "creates the BareMetalHost of the next server, and a Machine with these fields of providerSpec.value", func(ctx context.Context, name string, text *godog.DocString) error {
		var failed error
		err := s.addMachineWith(ctx, name, func(m *clusterv1.Machine) {
			failed = yaml.UnmarshalStrict([]byte(text.Content), &m.Spec.ProviderSpec.Value)
		})
		if failed != nil {
			return failed
		}
		return err
	})
	sc.Step(`^the host profile of "([^"]*)" matches: '([^']*)'$`, "waits until the condition BareMetalHostProfile of the Machine is ready, and its message contains this text", func(ctx context.Context, name, text string) error {
		return s.profileReports(ctx, name, true, text)
	})
	sc.Step(`^the host profile of "([^"]*)" does not match: '([^']*)'$`, "waits until the condition BareMetalHostProfile of the Machine is not ready, and its message contains this text", func(ctx context.Context, name, text string) error {
		return s.profileReports(ctx, name, false, text)
	})
}

func (s *scenario) writeHostProfile(ctx context.Context, name string, text *godog.DocString) error {
	p := &hostprofilev1.BareMetalHostProfile{ObjectMeta: day2Meta(name)}
	_, err := controllerutil.CreateOrUpdate(ctx, s.kube, p, func() error {
		p.Spec = hostprofilev1.BareMetalHostProfileSpec{}
		return yaml.UnmarshalStrict([]byte(text.Content), &p.Spec)
	})
	return err
}

func (s *scenario) writeUserData(ctx context.Context, text *godog.DocString) error {
	x := &corev1.Secret{ObjectMeta: day2Meta(machineUserData)}
	_, err := controllerutil.CreateOrUpdate(ctx, s.kube, x, func() error {
		x.Data = map[string][]byte{"userData": []byte(text.Content + "\n")}
		return nil
	})
	return err
}

func (s *scenario) profileReports(ctx context.Context, name string, ready bool, text string) error {
	return s.awaitMachine(ctx, name, fmt.Sprintf("has a profile that is ready: %t", ready), func(p *baremetalv1.MachineProviderStatus) bool {
		for _, c := range p.Conditions {
			if c.Type == "BareMetalHostProfile" {
				return c.Ready == ready && strings.Contains(c.Message, text)
			}
		}
		return false
	})
}
