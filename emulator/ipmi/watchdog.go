package ipmi

var watchdogCommands = []command{}
