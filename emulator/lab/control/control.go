// Package control is how programs of the same user speak to a running lab: an
// HTTP API on a unix socket, and its client. What it answers is for people and
// scripts; it is no BMC protocol and has no rights of its own: who can open the
// socket may do everything.
package control

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// ErrNoLab means that no lab runs in a directory.
var ErrNoLab = errors.New("no lab is running")

// noLabError is the ErrNoLab of one directory.
type noLabError struct{ dir string }

// Error implements error.
func (e *noLabError) Error() string {
	return fmt.Sprintf("%s in %s: start it with labctl up", ErrNoLab, e.dir)
}

// Is makes it an ErrNoLab.
func (*noLabError) Is(target error) bool { return target == ErrNoLab }

// Status describes a running lab.
type Status struct {
	PID        int    `json:"pid"`
	State      string `json:"state"`      // directory
	Kubeconfig string `json:"kubeconfig"` // file; "" without a Kubernetes API
	Images     string `json:"images"`     // URL below which the lab's images are
	// SecureImages is that of the same by HTTPS, with a certificate of the lab's
	// authority.
	SecureImages string    `json:"secureImages"`
	Hosts        int       `json:"hosts"`
	Speed        string    `json:"speed"`
	Name         string    `json:"name"`
	Seed         uint64    `json:"seed"`
	Time         time.Time `json:"time"`    // of the lab
	Faults       int       `json:"faults"`  // rules
	Version      string    `json:"version"` // of the program that the lab runs in
}

// Version is that of the program that this is part of, as far as its build
// tells.
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "", ""
	for _, s := range b.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	switch v := b.Main.Version; {
	case v != "" && v != "(devel)":
		return v
	case revision != "":
		return "devel " + revision + dirty
	}
	return "devel"
}

// errorBody is the body of a refusal.
type errorBody struct {
	Error string `json:"error"`
}
