package ipmi

var solCommands = []command{}
