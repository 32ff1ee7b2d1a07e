package ipmi

var sdrCommands = []command{}
