package lcm

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/metalab-dev/metalab/agent/kubeapi"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// client is a client of the Kubernetes API for one LCMMachine and the Secrets that it names.
type client struct {
	account Account
	*kubeapi.Client

	mu          sync.Mutex
	tokenSecret string // that has the next token, as the LCMMachine named it last
}

func newClient(a Account, files kubeapi.Files, api http.RoundTripper) *client {
	c := &client{account: a}
	c.Client = &kubeapi.Client{Server: a.Server, CAFile: a.CAFile, TokenFile: a.TokenFile, Files: files, Transport: api, Advice: c.tokenAdvice}
	return c
}

// watch calls changed for each change of the LCMMachine until the server ends the watch.
func (c *client) watch(ctx context.Context, changed func()) error {
	return c.Watch(ctx, c.collection(), "metadata.name="+c.account.Machine, changed)
}

func (c *client) collection() string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/lcmmachines", lcmv1.GroupVersion, url.PathEscape(c.account.Namespace))
}

// machine returns the LCMMachine.
func (c *client) machine(ctx context.Context) (*lcmv1.LCMMachine, error) {
	m := &lcmv1.LCMMachine{}
	return m, c.Call(ctx, http.MethodGet, c.collection()+"/"+url.PathEscape(c.account.Machine), "", nil, m)
}

// create creates the LCMMachine, unassigned.
func (c *client) create(ctx context.Context) error {
	m := lcmv1.LCMMachine{Spec: lcmv1.LCMMachineSpec{Type: lcmv1.MachineUnassigned}}
	m.APIVersion, m.Kind = lcmv1.GroupVersion.String(), "LCMMachine"
	m.Namespace, m.Name = c.account.Namespace, c.account.Machine
	return c.Call(ctx, http.MethodPost, c.collection(), "application/json", m, &lcmv1.LCMMachine{})
}

// patchStatus changes fields of the status (RFC 7386) and returns the object. A version
// that is not "" must be the object's resourceVersion.
func (c *client) patchStatus(ctx context.Context, status map[string]any, version string) (*lcmv1.LCMMachine, error) {
	patch := map[string]any{"status": status}
	if version != "" {
		patch["metadata"] = map[string]any{"resourceVersion": version}
	}
	m := &lcmv1.LCMMachine{}
	return m, c.Call(ctx, http.MethodPatch, c.collection()+"/"+url.PathEscape(c.account.Machine)+"/status", "application/merge-patch+json", patch, m)
}

// secret is the part of a Secret that the agent reads.
type secret struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string][]byte `json:"data"`
}

// secret returns a Secret. Its error has no content of it.
func (c *client) secret(ctx context.Context, namespace, name string) (*secret, error) {
	s := &secret{}
	at := fmt.Sprintf("/api/v1/namespaces/%s/secrets/%s", url.PathEscape(namespace), url.PathEscape(name))
	if err := c.Call(ctx, http.MethodGet, at, "", nil, s); err != nil {
		return nil, fmt.Errorf("Secret %s/%s: %w", namespace, name, err)
	}
	return s, nil
}
