// Package network is the part of the bare metal provider that gives servers their networks.
// A Machine that has claimed a host gets an IpamHost with the host's interfaces, an IPaddr
// for each address that its L2Template asks for, and a Secret with the network data that
// controller/mosk/provider/machines gives the host. The status of a Subnet counts its addresses.
//
// No two IPaddrs of a namespace have one address: the object's name follows from the
// address, so that the API refuses the second one, whoever creates it. They belong to the
// Machine, which exists until its host is deprovisioned.
//
// A host that has its image keeps its network. The package configures no server.
package network
