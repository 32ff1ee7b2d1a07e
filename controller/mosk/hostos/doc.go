// Package hostos validates host OS configuration: it loads the modules that
// HostOSConfigurationModules list, and checks that each HostOSConfiguration can be applied.
// It writes the status of HostOSConfigurationModules and, of HostOSConfigurations, the result of
// the validation alone; the bare metal provider acts on it. The package knows no machine.
package hostos
