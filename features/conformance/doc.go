// Package conformance runs its feature files: what the checks of a BMC
// (scenarios/conformance) find on the emulator, with and without quirks and
// faults. A lab serves all scenarios of a model; no Kubernetes is linked.
package conformance
