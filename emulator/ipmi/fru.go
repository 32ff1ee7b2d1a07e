package ipmi

var fruCommands = []command{}
