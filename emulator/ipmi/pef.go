package ipmi

var pefCommands = []command{}
