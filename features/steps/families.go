package steps

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/lab"
)

// registerFamilies binds the steps on servers that agents of two families change.
func (s *scenario) registerFamilies(sc *stepRegistry) {
	sc.Step(`^a lab with host OS configuration and machine configuration$`, "gives the scenario a lab of the families hoc and machineconfig", func(ctx context.Context) error {
		return s.startKind(ctx, 1, labKind{with: config.HOC + "," + config.MachineConfig})
	})
	sc.Step(`^the server is the node of a pool with a machine-config daemon and the LCM agent of "([^"]*)"$`, "gives the server user data with all three agents, the lab's image, a MachineConfigPool, and waits until the node is Done", func(ctx context.Context, machine string) error {
		node, err := s.nodeData(ctx, s.server.Name, "lab-agent-node", "lab-agent-mcd")
		if err != nil {
			return err
		}
		lcm, err := s.agentData(ctx, "runs", machine, agentDir+"lcm-token")
		if err != nil {
			return err
		}
		text, err := joinCloudConfigs(node, lcm)
		if err != nil {
			return err
		}
		return s.joinPoolWith(ctx, text)
	})
	sc.Step(`^the item "([^"]*)" of "([^"]*)" fails: "([^"]*)"$`, "waits until the agent has reported this text in the message of an item that has failed", func(ctx context.Context, item, machine, text string) error {
		return eventually(ctx, "the item "+item+" fails", func(ctx context.Context) (bool, string, error) {
			var m lcmv1.LCMMachine
			if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: machine}, &m); err != nil {
				return false, "", err
			}
			x := m.Status.StateItemStatuses[item]
			return x.FinishedAt != nil && x.ExitCode != 0 && strings.Contains(x.Message, text), fmt.Sprintf("%+v", m.Status.StateItemStatuses), nil
		})
	})
}

// joinCloudConfigs returns a cloud-config with the lists of all, and of other keys the first
// value.
func joinCloudConfigs(texts ...string) (string, error) {
	all := map[string]any{}
	for _, text := range texts {
		var one map[string]any
		if err := yaml.Unmarshal([]byte(text), &one); err != nil {
			return "", err
		}
		for key, value := range one {
			before, has := all[key]
			list, isList := value.([]any)
			switch {
			case !has:
				all[key] = value
			case isList:
				all[key] = append(before.([]any), list...)
			}
		}
	}
	text, err := yaml.Marshal(all)
	return "#cloud-config\n" + string(text), err
}
