package steps

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/metalab-dev/metalab/agent/lcm"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/lab"
)

// agentDir has the agent's files in a server.
const agentDir = "/etc/lab-agent/"

// registerLCMAgent binds the steps on the LCM agent in the system of a server.
func (s *scenario) registerLCMAgent(sc *stepRegistry) {
	sc.Step(`^an LCMMachine "([^"]*)" with the items:$`, "creates an LCMMachine with these stateItems", s.createItems)
	sc.Step(`^the items of "([^"]*)" become:$`, "replaces the stateItems of an LCMMachine", s.changeItems)
	sc.Step(`^the operator sets the user data of a server that (runs|lacks) the LCM agent of "([^"]*)"$`, "creates a service account with the rights of the agent, and user data with its token, configuration and unit, which is enabled or not", s.setAgentData)
	sc.Step(`^the item "([^"]*)" of "([^"]*)" ends with (\d+)$`, "waits until the agent has reported this exit code of an item", s.itemEnds)
	sc.Step(`^"([^"]*)" reports an InternalIP of "([^"]*)"$`, "waits until the agent has reported an address of the network, in CIDR notation", s.reportsAddress)
	sc.Step(`^the service account of the agent of "([^"]*)" is replaced$`, "deletes the service account and creates it again, and waits until the API refuses the agent's token", func(ctx context.Context, name string) error {
		account := &corev1.ServiceAccount{}
		account.Name, account.Namespace = "lcm-"+name, lab.Namespace
		code, token, err := s.shell(ctx, "cat "+agentDir+"token")
		if err != nil || code != 0 {
			return fmt.Errorf("the agent's token: code %d, %w", code, err)
		}
		if err := s.kube.Delete(ctx, account); err != nil {
			return err
		}
		account.ResourceVersion, account.UID = "", ""
		account.SetLabels(agentAccount)
		if err := s.kube.Create(ctx, account); err != nil {
			return err
		}
		// The API server remembers for some seconds that it has accepted a token.
		return eventually(ctx, "the API refuses the agent's token", func(ctx context.Context) (bool, string, error) {
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: strings.TrimSpace(token)}}
			err := s.kube.Create(ctx, review)
			return !review.Status.Authenticated, review.Status.Error, err
		})
	})
	sc.Step(`^the operator writes a new token of the agent of "([^"]*)" to the server$`, "requests a token of the service account, and writes it to the agent's file in the running system", func(ctx context.Context, name string) error {
		request := &authenticationv1.TokenRequest{}
		account := &corev1.ServiceAccount{}
		account.Name, account.Namespace = "lcm-"+name, lab.Namespace
		if err := s.kube.SubResource("token").Create(ctx, account, request); err != nil {
			return err
		}
		return s.writeOn(ctx, s.server.Name, agentDir+"token", request.Status.Token)
	})
	sc.Step(`^the server of "([^"]*)" gets the agent's files of "([^"]*)"$`, "copies configuration and token of the agent from one running system to another, and restarts the agent there", s.copyAgent)
	sc.NegativeStep(`^the item "([^"]*)" of "([^"]*)" does not begin$`, "asserts, once the agent in the server has looked twice at its LCMMachine, that it has no result of an item", func(ctx context.Context, item, machine string) error {
		if err := s.agentActs(ctx, s.server.Name); err != nil {
			return err
		}
		m, err := s.readLCMMachine(ctx, machine)
		if status, begun := m.Status.StateItemStatuses[item]; err == nil && begun {
			err = fmt.Errorf("it has %+v", status)
		}
		return err
	})
	sc.NegativeStep(`^the agent on "([^"]*)" has not written "([^"]*)"$`, "asserts, once the agent in a machine's server has looked twice at its LCMMachine, that the running system has no such file", func(ctx context.Context, machine, path string) error {
		h, err := s.serverOf(machine)
		if err != nil {
			return err
		}
		if err := s.agentActs(ctx, h.Name); err != nil {
			return err
		}
		code, out, err := s.shellOn(ctx, h.Name, "test ! -e "+path)
		if err == nil && code != 0 {
			err = fmt.Errorf("it has %s %s", path, out)
		}
		return err
	})
	sc.NegativeStep(`^no agent reports to "([^"]*)"$`, "asserts, once each controller has reconciled every object, that the LCMMachine's status is empty", s.noReport)
}

func (s *scenario) createItems(ctx context.Context, name string, text *godog.DocString) error {
	m := &lcmv1.LCMMachine{}
	m.Name, m.Namespace = name, lab.Namespace
	m.Spec = lcmv1.LCMMachineSpec{ClusterName: "c1", Type: "worker"}
	if err := yaml.UnmarshalStrict([]byte(text.Content), &m.Spec.StateItems); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	return s.create(ctx, m)
}

func (s *scenario) changeItems(ctx context.Context, name string, text *godog.DocString) error {
	var m lcmv1.LCMMachine
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, &m); err != nil {
		return err
	}
	before := m.DeepCopy()
	m.Spec.StateItems = nil
	if err := yaml.UnmarshalStrict([]byte(text.Content), &m.Spec.StateItems); err != nil {
		return fmt.Errorf("the step's YAML: %w", err)
	}
	return s.kube.Patch(ctx, &m, client.MergeFrom(before))
}

// agentAccount is the label of the objects that grantAgent creates.
var agentAccount = client.MatchingLabels{"metalab.dev/account-of": "lcm-agent"}

// deleteAgentAccounts deletes the objects that grantAgent has created.
func (b *testLab) deleteAgentAccounts(ctx context.Context) error {
	for _, o := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}} {
		if err := b.kube.DeleteAllOf(ctx, o, client.InNamespace(lab.Namespace), agentAccount); err != nil {
			return err
		}
	}
	return nil
}

// grantAgent creates a service account that may read an LCMMachine and write its status.
func (s *scenario) grantAgent(ctx context.Context, name string) (token string, err error) {
	account := &corev1.ServiceAccount{}
	account.Name, account.Namespace = "lcm-"+name, lab.Namespace
	role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"lcmmachines"}, ResourceNames: []string{name}, Verbs: []string{"get", "watch"}},
		{APIGroups: []string{lcmv1.GroupVersion.Group}, Resources: []string{"lcmmachines/status"}, ResourceNames: []string{name}, Verbs: []string{"patch"}},
	}}
	role.Name, role.Namespace = account.Name, account.Namespace
	binding := &rbacv1.RoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	binding.Name, binding.Namespace = account.Name, account.Namespace
	for _, o := range []client.Object{account, role, binding} {
		o.SetLabels(agentAccount)
		if err := s.create(ctx, o); err != nil {
			return "", err
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := s.kube.SubResource("token").Create(ctx, account, request); err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

func (s *scenario) setAgentData(ctx context.Context, what, name string) error {
	text, err := s.agentData(ctx, what, name, agentDir+"token")
	if err != nil {
		return err
	}
	return s.createConfigSecrets(ctx, text, name)
}

// agentData creates the service account of an agent, and returns the user data that
// setAgentData sets.
func (s *scenario) agentData(ctx context.Context, what, name, tokenFile string) (string, error) {
	token, err := s.grantAgent(ctx, name)
	if err != nil {
		return "", err
	}
	status, err := s.lab.Control().Status(ctx)
	if err != nil {
		return "", err
	}
	kubeconfig, err := clientcmd.BuildConfigFromFlags("", status.Kubeconfig)
	if err != nil {
		return "", err
	}
	account, err := yaml.Marshal(map[string]string{
		"server": kubeconfig.Host, "caFile": agentDir + "ca.crt", "tokenFile": tokenFile, "namespace": lab.Namespace, "machine": name,
	})
	if err != nil {
		return "", err
	}
	type file struct {
		Path        string `json:"path"`
		Content     string `json:"content"`
		Permissions string `json:"permissions"`
	}
	data := map[string]any{"hostname": name, "write_files": []file{
		{lcm.ConfigFile, string(account), "0644"}, {agentDir + "ca.crt", string(kubeconfig.CAData), "0644"}, {tokenFile, token, "0600"},
		{"/etc/systemd/system/lab-agent-lcm.service", lcm.Unit, "0644"},
	}}
	if what == "runs" {
		data["runcmd"] = []string{"systemctl enable --now lab-agent-lcm"}
	}
	text, err := yaml.Marshal(data)
	if err != nil {
		return "", err
	}
	return "#cloud-config\n" + string(text), nil
}

func (s *scenario) reportsAddress(ctx context.Context, machine, network string) error {
	in, err := netip.ParsePrefix(network)
	if err != nil {
		return fmt.Errorf("the step's network: %w", err)
	}
	return eventually(ctx, machine+" reports an InternalIP", func(ctx context.Context) (bool, string, error) {
		var m lcmv1.LCMMachine
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: machine}, &m); err != nil {
			return false, "", err
		}
		found := slices.ContainsFunc(m.Status.Addresses, func(a lcmv1.NodeAddress) bool {
			address, err := netip.ParseAddr(a.Address)
			return a.Type == lcmv1.AddressInternalIP && err == nil && in.Contains(address)
		})
		return found, fmt.Sprintf("%+v", m.Status.Addresses), nil
	})
}

func (s *scenario) itemEnds(ctx context.Context, item, machine string, code int) error {
	return eventually(ctx, "the item "+item+" ends", func(ctx context.Context) (bool, string, error) {
		var m lcmv1.LCMMachine
		if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: machine}, &m); err != nil {
			return false, "", err
		}
		x := m.Status.StateItemStatuses[item]
		return x.FinishedAt != nil && x.ExitCode == code, fmt.Sprintf("%+v", x), nil
	})
}

// writeOn writes a text to a file that exists in the running system of a server.
func (s *scenario) writeOn(ctx context.Context, server, path, text string) error {
	code, out, err := s.shellOn(ctx, server, "cat > "+path+" <<'END'\n"+text+"\nEND")
	if err == nil && code != 0 {
		err = fmt.Errorf("code %d: %s", code, out)
	}
	return err
}

// copyAgent gives the agent of one server the configuration of another machine's agent.
func (s *scenario) copyAgent(ctx context.Context, to, from string) error {
	source, err := s.serverOf(from)
	if err != nil {
		return err
	}
	target, err := s.serverOf(to)
	if err != nil {
		return err
	}
	for _, path := range []string{lcm.ConfigFile, agentDir + "token"} {
		code, text, err := s.shellOn(ctx, source.Name, "cat "+path)
		if err == nil && code != 0 {
			err = fmt.Errorf("code %d: %s", code, text)
		}
		if err != nil {
			return err
		}
		if err := s.writeOn(ctx, target.Name, path, text); err != nil {
			return err
		}
	}
	code, out, err := s.shellOn(ctx, target.Name, "systemctl restart lab-agent-lcm")
	if err == nil && code != 0 {
		err = fmt.Errorf("code %d: %s", code, out)
	}
	return err
}

// agentActs returns when the agent in a server has looked at its LCMMachine in a look that
// began after this call, and in another after that, or has failed to.
func (s *scenario) agentActs(ctx context.Context, server string) error {
	for range 2 {
		before := s.lab.AgentSteps(server)
		if err := s.pass(ctx, 10*time.Minute); err != nil {
			return err
		}
		err := eventually(ctx, "the agent in "+server+" looks at its LCMMachine", func(ctx context.Context) (bool, string, error) {
			after := s.lab.AgentSteps(server)
			state := fmt.Sprintf("%+v, then %+v", before, after)
			if after.Ended > before.Begun || after.Ended < after.Begun {
				return after.Ended > before.Begun, state, nil
			}
			return false, state, s.pass(ctx, 10*time.Minute) // the look of before ended after the time had moved
		})
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotReconciled, err)
		}
	}
	return nil
}

func (s *scenario) noReport(ctx context.Context, machine string) error {
	if err := s.letControllersAct(ctx); err != nil {
		return err
	}
	var m lcmv1.LCMMachine
	if err := s.kube.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: machine}, &m); err != nil {
		return err
	}
	if len(m.Status.StateItemStatuses) > 0 || m.Status.HostInfo != nil || m.Status.AgentVersion != "" {
		return fmt.Errorf("the status is %+v", m.Status)
	}
	return nil
}
