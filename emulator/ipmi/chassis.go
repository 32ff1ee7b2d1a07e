package ipmi

var chassisCommands = []command{}
