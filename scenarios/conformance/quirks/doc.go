// Package quirks tests the drivers against the quirks of real BMCs: with each quirk
// of the emulator switched on, and on each server model, a driver does all its
// operations over the wire. It has tests only, and knows no Kubernetes.
package quirks
