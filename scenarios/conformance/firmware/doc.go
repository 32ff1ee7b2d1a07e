// Package firmware tests that the driver and the emulated BMCs, which share no code,
// agree over the wire on BIOS settings, attribute registries and firmware updates.
// It has tests only, and knows no Kubernetes.
package firmware
