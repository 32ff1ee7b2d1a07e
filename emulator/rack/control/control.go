// Package control lets programs of the same user control a running lab: it has an
// HTTP API on a unix socket, and its client. The API is for people and scripts, is
// no BMC protocol, and has no access rights: whoever can open the socket may do
// everything.
package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/metalab-dev/metalab/version"
)

// ErrNoLab means that no lab runs in a directory.
var ErrNoLab = errors.New("no lab is running")

// noLabError is ErrNoLab for one directory.
type noLabError struct{ dir string }

// Error implements error.
func (e *noLabError) Error() string {
	return fmt.Sprintf("%s in %s: start it with labctl up", ErrNoLab, e.dir)
}

// Is makes errors.Is find ErrNoLab.
func (*noLabError) Is(target error) bool { return target == ErrNoLab }

// Program is a file that servers download and run.
type Program struct {
	Version string `json:"version"`
	URL     string `json:"downloadURL"`
	SHA256  string `json:"sha256"` // in hexadecimal
}

// Status is the state of a running lab.
type Status struct {
	PID        int    `json:"pid"`
	State      string `json:"state"`      // directory
	Kubeconfig string `json:"kubeconfig"` // file; "" without a Kubernetes API
	// ClusterAPIs are the Kubernetes APIs that Clusters have of their own.
	ClusterAPIs []ClusterAPI `json:"clusterAPIs,omitempty"`
	Images      string       `json:"images"` // base URL of the lab's images
	// SecureImages is the same with HTTPS and a certificate of the lab's authority.
	SecureImages string `json:"secureImages"`
	// Charts is the URL of the lab's repository of Helm charts; "" when it has none.
	Charts string `json:"charts,omitempty"`
	// Agent is the lab's own LCM agent, as spec.agent of a ClusterRelease names it; nil when the lab
	// has no ClusterReleases.
	Agent   *Program  `json:"agent,omitempty"`
	Hosts   int       `json:"hosts"`
	Speed   string    `json:"speed"`
	Name    string    `json:"name"`
	Seed    uint64    `json:"seed"`
	Time    time.Time `json:"time"`    // the lab's time
	Faults  int       `json:"faults"`  // number of fault rules
	Version string    `json:"version"` // version of the program that runs the lab
	// View is the URL of the lab's page, with its token, and Metrics that of its metrics for
	// Prometheus; "" when it has none.
	View    string `json:"view,omitempty"`
	Metrics string `json:"metrics,omitempty"`
	// Shards are the processes that run the hosts of a lab in several; none in one process.
	Shards []ShardStatus `json:"shards,omitempty"`
	// Storage says why changes cannot be stored: there is no space left. "" is as it
	// should be.
	Storage string `json:"storage,omitempty"`
}

// ClusterAPI is the Kubernetes API of a Cluster.
type ClusterAPI struct {
	Cluster    string `json:"cluster"`    // NAMESPACE/NAME
	Kubeconfig string `json:"kubeconfig"` // file
}

// ShardStatus is the state of a shard.
type ShardStatus struct {
	Name  string `json:"name"`
	Hosts int    `json:"hosts"`
	State string `json:"state"` // up, or why it is not
	PID   int    `json:"pid,omitempty"`
	Dir   string `json:"dir,omitempty"`  // its state directory
	View  string `json:"view,omitempty"` // URL of its page
}

// Version returns the version of this program from its build information.
func Version() string { return version.Read().Version }

// errorBody is the body of an error response.
type errorBody struct {
	Error string `json:"error"`
}
