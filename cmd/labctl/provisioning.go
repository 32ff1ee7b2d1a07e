package main

import (
	"context"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/emulator/rack/control"
)

// provisioning is what the controllers report about a server.
type provisioning struct {
	Name        string   `json:"name"` // namespace/name of its BareMetalHost
	State       string   `json:"state"`
	Workarounds []string `json:"workarounds,omitempty"` // that the driver uses for this BMC
}

// provisioningTimeout bounds the request: a server is shown also when its API does
// not answer.
const provisioningTimeout = 3 * time.Second

// readProvisioning reads what the lab's Kubernetes API knows about a server. It
// returns nil when there is no API or no BareMetalHost.
func readProvisioning(ctx context.Context, o *options, d control.Detail) *provisioning {
	st, err := control.NewClient(o.state).Status(ctx)
	if err != nil || st.Kubeconfig == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, provisioningTimeout)
	defer cancel()
	c, err := kubeClient(st.Kubeconfig)
	if err != nil {
		return nil
	}
	var all metal3.BareMetalHostList
	if err := c.List(ctx, &all); err != nil {
		return nil
	}
	for i := range all.Items {
		h := &all.Items[i]
		if !sameBMC(h.Spec.BMC.Address, d.BMCAddress) {
			continue
		}
		t := &provisioning{Name: h.Namespace + "/" + h.Name, State: string(h.Status.Provisioning.State)}
		if w := meta.FindStatusCondition(h.Status.Conditions, host.WorkaroundsCondition); w != nil {
			t.Workarounds = strings.Split(w.Message, "; ")
		}
		return t
	}
	return nil
}

// sameBMC reports whether two addresses, whose schemes may differ, are the same
// BMC's.
func sameBMC(a, b string) bool {
	x, err := bmc.ParseAddress(a)
	if err != nil {
		return false
	}
	y, err := bmc.ParseAddress(b)
	return err == nil && x.Host == y.Host && (x.Port == y.Port || x.Driver != y.Driver)
}
