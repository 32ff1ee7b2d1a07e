package ipmi

var appCommands = []command{}
