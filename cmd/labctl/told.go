package main

import (
	"context"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host"
	"github.com/metalab-dev/metalab/emulator/lab/control"
)

// told is what the controllers tell of a server.
type told struct {
	Name        string   `json:"name"` // namespace and name of its object
	State       string   `json:"state"`
	Workarounds []string `json:"workarounds,omitempty"` // for what its BMC does otherwise than others
}

// toldLimit bounds the question: a server is shown with its API away, too.
const toldLimit = 3 * time.Second

// readTold asks the lab's Kubernetes API for what is known of a server; nil when
// there is none, or it knows none.
func readTold(ctx context.Context, o *options, d control.Detail) *told {
	st, err := control.NewClient(o.state).Status(ctx)
	if err != nil || st.Kubeconfig == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, toldLimit)
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
		t := &told{Name: h.Namespace + "/" + h.Name, State: string(h.Status.Provisioning.State)}
		if w := meta.FindStatusCondition(h.Status.Conditions, host.WorkaroundsCondition); w != nil {
			t.Workarounds = strings.Split(w.Message, "; ")
		}
		return t
	}
	return nil
}

// sameBMC says whether two addresses, whose schemes may differ, are one BMC's.
func sameBMC(a, b string) bool {
	x, err := bmc.ParseAddress(a)
	if err != nil {
		return false
	}
	y, err := bmc.ParseAddress(b)
	return err == nil && x.Host == y.Host && (x.Port == y.Port || x.Driver != y.Driver)
}
