// Package clients tests that public clients (gofish, sushy, redfishtool and
// ipmitool) manage servers of every model, and so BMCs of every dialect. It has tests
// only, and knows neither Metalab's drivers nor Kubernetes.
package clients
