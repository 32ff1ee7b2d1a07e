package ipmi

var userCommands = []command{}
