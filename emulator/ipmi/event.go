package ipmi

var eventCommands = []command{}
