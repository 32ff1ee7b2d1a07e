package ipmi

var lanCommands = []command{}
