package ipmi

var selCommands = []command{}
