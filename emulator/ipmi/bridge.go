package ipmi

var bridgeCommands = []command{}
