//go:build !race

package clients

const raced = false
