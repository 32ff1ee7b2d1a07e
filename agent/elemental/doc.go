// Package elemental is the Elemental agent of a server (Cluster API's provider for Elemental,
// v0.7.0): it registers the server, installs it, applies the bootstrap configuration, reconciles
// the version of the operating system, and resets the server. It talks to the registration API
// alone (REST, tokens signed with Ed25519), and leaves all changes of the operating system to a
// Plugin.
//
// The phases and their order are those of the provider's agent. The plugin dummy keeps the
// contract of files of the provider's document on that plugin, to which an administrator's
// automation is tied. Package sim has a plugin that acts on these files.
//
// Where a killed agent of the provider would lose its identity or wait for ever, this one goes
// on: it stores its key and its name before it registers, and the boot in which it has applied
// the bootstrap configuration.
package elemental
