// Package firmware checks, by its tests, that the driver and the emulated BMCs
// agree on BIOS settings, attribute registries and firmware updates: two
// implementations that share no code, over the wire. It holds nothing else, and
// knows no Kubernetes.
package firmware
