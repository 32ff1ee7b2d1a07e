// Package raid has the tests of volumes in which both sides meet without a
// Kubernetes API: controller/metal3/raid and the Redfish driver on an emulated server. It
// exports nothing.
package raid
