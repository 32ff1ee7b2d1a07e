package ipmi

var firewallCommands = []command{}
