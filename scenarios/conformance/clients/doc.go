// Package clients checks, by its tests, that public clients manage servers of
// every model that there is, and with them BMCs of every dialect: gofish, sushy,
// redfishtool and ipmitool, as operators use them. It holds nothing else, and
// knows neither our drivers nor Kubernetes.
package clients
