// Package deployment describes the roots that a node boots, made of OS images, and boots them by
// rpm-ostree on a host that has it. It knows no MachineConfig.
package deployment

import "slices"

// Root is a root file system that a node boots.
type Root struct {
	Image     string   // REPOSITORY@sha256:DIGEST; "" is the one that the node was installed with
	Arguments []string // kernel arguments
}

// Next is the root that the next boot boots.
type Next struct {
	Image       string   // that Pull has fetched; "" is the one that the node was installed with
	Remove, Add []string // arguments of the kernel, one each
	// Drop lists files whose local copies the boot removes, so that those of the image are
	// seen.
	Drop []string
}

// ImageError is the reason why an image can never be booted.
type ImageError struct{ Err error }

// Error implements error.
func (e *ImageError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ImageError) Unwrap() error { return e.Err }

// Arguments returns arguments of the kernel without one of each that is removed, and with those
// that are added at the end.
func Arguments(booted, remove, add []string) []string {
	out := slices.Clone(booted)
	for _, a := range remove {
		if i := slices.Index(out, a); i >= 0 {
			out = slices.Delete(out, i, i+1)
		}
	}
	return append(out, add...)
}
