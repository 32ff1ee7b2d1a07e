// Package quirks checks, by its tests, that the drivers cope with what real BMCs
// do wrong: each quirk of the emulator is switched on, and the drivers do all of
// their work on such a BMC, over the wire. It holds nothing else, and knows no
// Kubernetes.
package quirks
