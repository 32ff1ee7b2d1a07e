// Package command holds the commands of IPMI 2.0 and DCMI 1.5: the command
// table, which says for each command its network function and number, the least
// privilege and the length of its data, and a handler for each row. A handler
// reads the views of the host and of the BMC, applies commands to them, and
// appends the response's data to its Request. State is what the commands of one
// BMC store until it restarts. Sockets, datagrams and the SOL link are package
// ipmi's, which runs the commands; Server is what a handler asks of it.
package command
