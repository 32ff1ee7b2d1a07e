// Package cmd has the programs, one in each directory, and the scripts that build and
// release them, which its tests run with another program in place of go. It has no code of
// its own.
package cmd
