//go:build !race

package redfish

const raced = false
