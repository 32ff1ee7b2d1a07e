// Package control is how programs of the same user speak to a running lab: an
// HTTP API on a unix socket, and its client. What it answers is for people and
// scripts; it is no BMC protocol and has no rights of its own: who can open the
// socket may do everything.
package control

import (
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/lab"
)

// ErrNoLab means that no lab runs in a directory.
var ErrNoLab = errors.New("no lab is running")

// noLab is the ErrNoLab of one directory.
type noLab struct{ dir string }

// Error implements error.
func (e *noLab) Error() string {
	return fmt.Sprintf("%s in %s: start it with labctl up", ErrNoLab, e.dir)
}

// Is makes it an ErrNoLab.
func (*noLab) Is(target error) bool { return target == ErrNoLab }

// Status describes a running lab.
type Status struct {
	PID        int    `json:"pid"`
	State      string `json:"state"`      // directory
	Kubeconfig string `json:"kubeconfig"` // file; "" without a Kubernetes API
	Images     string `json:"images"`     // URL below which the lab's images are
	Hosts      int    `json:"hosts"`
	Speed      string `json:"speed"`
}

// Host describes one host of a running lab.
type Host struct {
	Name           string `json:"name"`
	Profile        string `json:"profile"`
	Power          string `json:"power"`      // as Redfish spells it
	Phase          string `json:"phase"`      // between off and running
	Redfish        string `json:"redfish"`    // URL of the service root
	BMCAddress     string `json:"bmcAddress"` // as spec.bmc.address of a BareMetalHost
	BootMACAddress string `json:"bootMACAddress,omitempty"`
	Username       string `json:"username"`
	Password       string `json:"password"`
	CAFile         string `json:"caFile"` // that the BMC's certificate is verified with
}

// Hosts describes all hosts of a lab.
func Hosts(l *lab.Lab) []Host {
	out := []Host{} // [] in JSON
	for _, h := range l.Hosts() {
		out = append(out, describe(l, h))
	}
	return out
}

func describe(l *lab.Lab, h *lab.Host) Host {
	v, at := h.Machine(), h.Address()
	d := Host{
		Name: h.Name(), Profile: v.Profile.Name, Power: string(v.Power), Phase: string(v.Phase),
		Redfish:    h.URL() + "/redfish/v1/",
		BMCAddress: fmt.Sprintf("redfish-virtualmedia://%s/redfish/v1/Systems/%s", at, h.Dialect().SystemID),
		CAFile:     l.CAFile(),
	}
	if nics := v.Identity.NICs; len(nics) > 0 {
		d.BootMACAddress = nics[0].MAC
	}
	if a, ok := h.Admin(); ok {
		d.Username, d.Password = a.Name, a.Password
	}
	return d
}

// problem is the body of a refusal.
type problem struct {
	Error string `json:"error"`
}

// power is the body of a request to reset a host.
type power struct {
	Reset string `json:"reset"` // a ResetType of Redfish
}
